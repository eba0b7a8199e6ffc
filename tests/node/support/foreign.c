// An addon of another author: it makes its own externals. Written against the engine alone, without its headers.
#include <stddef.h>
#include <stdint.h>

typedef struct env *napi_env;
typedef struct value *napi_value;
typedef struct info *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);

extern int napi_create_external(napi_env, void *data, void *finalize, void *hint, napi_value *result);
extern int napi_create_function(napi_env, const char *name, size_t length, napi_callback, void *data, napi_value *result);
extern int napi_get_cb_info(napi_env, napi_callback_info, size_t *count, napi_value *arguments, napi_value *this, void **data);
extern int napi_get_value_external(napi_env, napi_value, void **result);
extern int napi_set_named_property(napi_env, napi_value object, const char *name, napi_value);

static uint64_t zeros[512];

// Each function makes an external over what it was registered with: no address, one that cannot be read, plain memory.
static napi_value make(napi_env env, napi_callback_info info) {
	void *data;
	napi_value made;
	napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
	napi_create_external(env, data, NULL, NULL, &made);
	return made;
}

// Makes an external over a copy of the first bytes of what another one holds: a forged handle, down to its tag.
static napi_value forge(napi_env env, napi_callback_info info) {
	static uint64_t copied[64][8];
	static size_t used;
	size_t count = 1;
	napi_value other, made;
	void *data;
	napi_get_cb_info(env, info, &count, &other, NULL, NULL);
	napi_get_value_external(env, other, &data);
	uint64_t *copy = copied[used++ % 64];
	for (size_t word = 0; word < 8; word++) copy[word] = ((uint64_t *)data)[word];
	napi_create_external(env, copy, NULL, NULL, &made);
	return made;
}

static void add(napi_env env, napi_value exports, const char *name, napi_callback callback, void *data) {
	napi_value function;
	napi_create_function(env, name, (size_t)-1, callback, data, &function);
	napi_set_named_property(env, exports, name, function);
}

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
	add(env, exports, "overNothing", make, NULL);
	add(env, exports, "overUnreadable", make, (void *)1);
	add(env, exports, "overZeros", make, zeros);
	add(env, exports, "forge", forge, NULL);
	return exports;
}
