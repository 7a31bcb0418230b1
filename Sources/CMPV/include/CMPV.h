#ifndef LOCKSTEP_CMPV_H
#define LOCKSTEP_CMPV_H

#include <mpv/client.h>
#include <stddef.h>

// The functions of libmpv that the player uses. The library is opened on demand, not linked: loading it takes about
// 50 MB and 90 ms, which a player without a loaded episode saves.
struct cmpv_functions {
    unsigned long (*_Nonnull client_api_version)(void);
    const char *_Nonnull (*_Nonnull error_string)(int error);
    mpv_handle *_Nullable (*_Nonnull create)(void);
    int (*_Nonnull initialize)(mpv_handle *_Nonnull);
    void (*_Nonnull terminate_destroy)(mpv_handle *_Nonnull);
    void (*_Nonnull wakeup)(mpv_handle *_Nonnull);
    mpv_event *_Nonnull (*_Nonnull wait_event)(mpv_handle *_Nonnull, double timeout);
    int (*_Nonnull set_option_string)(mpv_handle *_Nonnull, const char *_Nonnull name, const char *_Nonnull value);
    int (*_Nonnull set_property)(
        mpv_handle *_Nonnull, const char *_Nonnull name, mpv_format format, void *_Nonnull data);
    int (*_Nonnull set_property_async)(
        mpv_handle *_Nonnull, uint64_t reply, const char *_Nonnull name, mpv_format format, void *_Nonnull data);
    int (*_Nonnull get_property)(
        mpv_handle *_Nonnull, const char *_Nonnull name, mpv_format format, void *_Nonnull data);
    int (*_Nonnull observe_property)(
        mpv_handle *_Nonnull, uint64_t reply, const char *_Nonnull name, mpv_format format);
    int (*_Nonnull command_async)(
        mpv_handle *_Nonnull, uint64_t reply, const char *_Nullable *_Nonnull arguments);
    int (*_Nonnull request_log_messages)(mpv_handle *_Nonnull, const char *_Nonnull level);
    void (*_Nonnull free)(void *_Nullable);
    void (*_Nonnull free_node_contents)(mpv_node *_Nonnull);
};

// Opens libmpv, once per process, and returns its functions; null with a sentence in `error` if it isn't installed
// or lacks one of them. Two threads must not call it at once. The library is never closed.
const struct cmpv_functions *_Nullable cmpv_open(char *_Nonnull error, size_t capacity);

#endif
