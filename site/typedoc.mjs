// How the API of the Node package becomes pages: one for each entry that package.json exports.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { Converter, ReflectionKind } from 'typedoc'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const types = Object.values(exports).flatMap((entry) => entry.require?.types ?? [])

/** Names a page by what an application imports, wherever the file is. */
function nameByExport(app) {
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (_context, reflection) => {
    if (reflection.kindOf(ReflectionKind.Module)) reflection.name = basename(reflection.name)
  })
}

/** @type {Partial<import('typedoc').TypeDocOptions & import('typedoc-plugin-markdown').PluginOptions>} */
export default {
  plugin: ['typedoc-plugin-markdown', nameByExport],
  entryPoints: types.map((path) => `.${path.replace('/dist/', '/lib/').replace('.d.ts', '.ts')}`),
  tsconfig: '../tsconfig.build.json',
  out: '../build/docs-src/node',
  entryFileName: 'index',
  readme: 'none',
  name: 'Node',
  excludeInternal: true,
  excludeExternals: true, // what Node and the frameworks declare is documented there
  excludePrivate: true,
  disableSources: true,
  treatWarningsAsErrors: true,
  // A comment may name what its file does not import; it is then text. mkdocs holds that every real link leads somewhere.
  validation: { notExported: false, invalidLink: false },
  outputFileStrategy: 'modules',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  enumMembersFormat: 'table',
  useHTMLAnchors: true, // mkdocs numbers headings of one name otherwise than typedoc
}
