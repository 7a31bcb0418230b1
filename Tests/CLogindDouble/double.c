#define _GNU_SOURCE
#include "CLogindDouble.h"

#ifdef __linux__
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;

#define MANAGER "org.freedesktop.login1"
#define MANAGER_PATH "/org/freedesktop/login1"
#define MANAGER_INTERFACE "org.freedesktop.login1.Manager"

struct logind_double {
    sd_bus *bus;
    void *library;
};

#define FUNCTION(result, name, ...) result (*name)(__VA_ARGS__) = (result(*)(__VA_ARGS__))dlsym(library, #name)

struct logind_double *logind_double_open(const char *address) {
    void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    struct logind_double *manager = library ? calloc(1, sizeof *manager) : NULL;
    if (!manager) return NULL;
    manager->library = library;
    FUNCTION(int, sd_bus_new, sd_bus **);
    FUNCTION(int, sd_bus_set_address, sd_bus *, const char *);
    FUNCTION(int, sd_bus_set_bus_client, sd_bus *, int);
    FUNCTION(int, sd_bus_start, sd_bus *);
    FUNCTION(int, sd_bus_request_name, sd_bus *, const char *, uint64_t);
    if (sd_bus_new(&manager->bus) >= 0 && sd_bus_set_address(manager->bus, address) >= 0 &&
        sd_bus_set_bus_client(manager->bus, 1) >= 0 && sd_bus_start(manager->bus) >= 0 &&
        sd_bus_request_name(manager->bus, MANAGER, 0) >= 0)
        return manager;
    logind_double_close(manager);
    return NULL;
}

int logind_double_grant(struct logind_double *manager) {
    void *library = manager->library;
    FUNCTION(int, sd_bus_process, sd_bus *, sd_bus_message **);
    FUNCTION(int, sd_bus_wait, sd_bus *, uint64_t);
    FUNCTION(int, sd_bus_message_is_method_call, sd_bus_message *, const char *, const char *);
    FUNCTION(int, sd_bus_reply_method_return, sd_bus_message *, const char *, ...);
    FUNCTION(sd_bus_message *, sd_bus_message_unref, sd_bus_message *);
    time_t limit = time(NULL) + 30;
    while (time(NULL) < limit) {
        sd_bus_message *message = NULL;
        int result = sd_bus_process(manager->bus, &message);
        if (result < 0) return -1;
        int ends[2] = {-1, -1};
        if (message && sd_bus_message_is_method_call(message, MANAGER_INTERFACE, "Inhibit") > 0 &&
            pipe2(ends, O_CLOEXEC) == 0) {
            sd_bus_reply_method_return(message, "h", ends[1]);
            close(ends[1]);
        }
        if (message) sd_bus_message_unref(message);
        if (ends[0] >= 0) return ends[0];
        if (result == 0) sd_bus_wait(manager->bus, 1000000);
    }
    return -1;
}

int logind_double_tell(struct logind_double *manager, int suspends) {
    void *library = manager->library;
    FUNCTION(int, sd_bus_emit_signal, sd_bus *, const char *, const char *, const char *, const char *, ...);
    FUNCTION(int, sd_bus_flush, sd_bus *);
    int result =
        sd_bus_emit_signal(manager->bus, MANAGER_PATH, MANAGER_INTERFACE, "PrepareForSleep", "b", suspends);
    return result < 0 ? result : sd_bus_flush(manager->bus);
}

void logind_double_close(struct logind_double *manager) {
    void *library = manager->library;
    FUNCTION(sd_bus *, sd_bus_flush_close_unref, sd_bus *);
    if (manager->bus) sd_bus_flush_close_unref(manager->bus);
    free(manager);
}
#else
#include <stddef.h>

struct logind_double *logind_double_open(const char *address) {
    (void)address;
    return NULL;
}
int logind_double_grant(struct logind_double *manager) {
    (void)manager;
    return -1;
}
int logind_double_tell(struct logind_double *manager, int suspends) {
    (void)manager;
    (void)suspends;
    return -1;
}
void logind_double_close(struct logind_double *manager) { (void)manager; }
#endif
