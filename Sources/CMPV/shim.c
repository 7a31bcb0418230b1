#include "CMPV.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

static bool resolve(void *library, const char *name, void **function, char *error, size_t capacity) {
    *function = dlsym(library, name);
    if (*function) return true;
    snprintf(error, capacity, "libmpv has no function %s", name);
    return false;
}

const struct cmpv_functions *cmpv_open(char *error, size_t capacity) {
    static struct cmpv_functions functions;
    static bool opened;
    if (opened) return &functions;

    // Version 2 of the library's interface, then version 1, whose part that is used here is the same.
    void *library = dlopen("libmpv.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(error, capacity, "%s", reason ? reason : "libmpv cannot be opened");
        library = dlopen("libmpv.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) return NULL;

    const struct {
        const char *name;
        void **function;
    } wanted[] = {
        {"mpv_client_api_version", (void **)&functions.client_api_version},
        {"mpv_error_string", (void **)&functions.error_string},
        {"mpv_create", (void **)&functions.create},
        {"mpv_initialize", (void **)&functions.initialize},
        {"mpv_terminate_destroy", (void **)&functions.terminate_destroy},
        {"mpv_wakeup", (void **)&functions.wakeup},
        {"mpv_wait_event", (void **)&functions.wait_event},
        {"mpv_set_option_string", (void **)&functions.set_option_string},
        {"mpv_set_property_async", (void **)&functions.set_property_async},
        {"mpv_get_property", (void **)&functions.get_property},
        {"mpv_observe_property", (void **)&functions.observe_property},
        {"mpv_command_async", (void **)&functions.command_async},
        {"mpv_request_log_messages", (void **)&functions.request_log_messages},
        {"mpv_free", (void **)&functions.free},
        {"mpv_free_node_contents", (void **)&functions.free_node_contents},
    };
    for (size_t index = 0; index < sizeof wanted / sizeof *wanted; index++) {
        if (!resolve(library, wanted[index].name, wanted[index].function, error, capacity)) {
            dlclose(library);
            return NULL;
        }
    }
    opened = true;
    return &functions;
}
