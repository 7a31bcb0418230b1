#ifndef LOCKSTEP_CLIBRARYLOADER_H
#define LOCKSTEP_CLIBRARYLOADER_H

#include <stdbool.h>
#include <stddef.h>

// Shared libraries that are opened on demand rather than linked: a program starts without them and says what is missing.

/// A function that is looked up, and where its address is put.
struct library_function {
    const char *name;
    void **address;
};

/// Opens the first of the libraries `names`, whose list ends with NULL, that is there, and looks `functions` up in it.
///
/// False, with a sentence in `error`, if there is none or it lacks a function. The library stays open for good.
bool library_load(
    const char *const *names, const struct library_function *functions, size_t count, char *error, size_t capacity);

#endif
