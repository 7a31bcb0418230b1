#include "CMPV.h"

#include <CLibraryLoader.h>
#include <dlfcn.h>

static void ignore(const char *file, int line, const char *function, int error, const char *format, ...) {
    (void)file, (void)line, (void)function, (void)error, (void)format;
}

/// Silences libasound, if libmpv has loaded it: without a device it writes eight lines for each opened file, although
/// libmpv reports the missing device too.
static void silence_libasound(void) {
    typedef void handler(const char *, int, const char *, int, const char *, ...);
    void *library = dlopen("libasound.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) return;
    int (*set_handler)(handler *) = (int (*)(handler *))dlsym(library, "snd_lib_error_set_handler");
    if (set_handler) set_handler(ignore);
    dlclose(library);
}

const struct cmpv_functions *cmpv_open(char *error, size_t capacity) {
    static struct cmpv_functions functions;
    static bool opened;
    if (opened) return &functions;

    const struct library_function wanted[] = {
        {"mpv_client_api_version", (void **)&functions.client_api_version},
        {"mpv_error_string", (void **)&functions.error_string},
        {"mpv_create", (void **)&functions.create},
        {"mpv_initialize", (void **)&functions.initialize},
        {"mpv_terminate_destroy", (void **)&functions.terminate_destroy},
        {"mpv_wakeup", (void **)&functions.wakeup},
        {"mpv_wait_event", (void **)&functions.wait_event},
        {"mpv_set_option_string", (void **)&functions.set_option_string},
        {"mpv_set_property", (void **)&functions.set_property},
        {"mpv_set_property_async", (void **)&functions.set_property_async},
        {"mpv_get_property", (void **)&functions.get_property},
        {"mpv_observe_property", (void **)&functions.observe_property},
        {"mpv_command_async", (void **)&functions.command_async},
        {"mpv_request_log_messages", (void **)&functions.request_log_messages},
        {"mpv_free", (void **)&functions.free},
        {"mpv_free_node_contents", (void **)&functions.free_node_contents},
    };
    // Version 2 of the library's interface, then version 1; the functions used here are the same in both.
    static const char *const names[] = {"libmpv.so.2", "libmpv.so.1", NULL};
    opened = library_load(names, wanted, sizeof wanted / sizeof *wanted, error, capacity);
    if (opened) silence_libasound();
    return opened ? &functions : NULL;
}
