#ifndef LOCKSTEP_CLIBRARYLOADER_H
#define LOCKSTEP_CLIBRARYLOADER_H

#include <stdbool.h>
#include <stddef.h>

// Opens shared libraries on demand; they aren't linked, so a program starts without them and reports what is missing.

/// The name of a function, and the variable for its address.
struct library_function {
    const char *name;
    void **address;
};

/// Opens the first available library of `names`, which ends with NULL, and looks up `functions` in it.
///
/// Returns false, with a sentence in `error`, if there is none or it lacks a function. The library is never closed.
bool library_load(
    const char *const *names, const struct library_function *functions, size_t count, char *error, size_t capacity);

#endif
