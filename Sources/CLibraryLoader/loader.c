#include "CLibraryLoader.h"

#include <dlfcn.h>
#include <stdio.h>

bool library_load(
    const char *const *names, const struct library_function *functions, size_t count, char *error, size_t capacity) {
    void *library = NULL;
    const char *const *name = names;
    for (; *name && !library; name++) {
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (library || name != names) continue;
        // The error is that of the first library, which is the one usually installed.
        const char *reason = dlerror();
        if (reason) {
            snprintf(error, capacity, "%s", reason);
        } else {
            snprintf(error, capacity, "%s cannot be opened", *names);
        }
    }
    if (!library) return false;
    for (size_t index = 0; index < count; index++) {
        *functions[index].address = dlsym(library, functions[index].name);
        if (*functions[index].address) continue;
        snprintf(error, capacity, "%s has no function %s", name[-1], functions[index].name);
        dlclose(library);
        return false;
    }
    return true;
}
