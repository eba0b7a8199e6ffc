// How the API of the Node package becomes pages: one for each entry that package.json exports.
import { readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const entries = Object.keys(exports).filter((path) => !path.endsWith('.json'))

/** @type {Partial<import('typedoc').TypeDocOptions & import('typedoc-plugin-markdown').PluginOptions>} */
export default {
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: entries.map((path) => `../bindings-node/lib/${path.slice(2) || 'index'}.ts`),
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
