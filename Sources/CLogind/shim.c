#define _GNU_SOURCE
#include "CLogind.h"

#include <stdio.h>

#ifdef __linux__
#include <CLibraryLoader.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef int (*message_handler)(sd_bus_message *, void *, void *);

#define MANAGER "org.freedesktop.login1"
#define MANAGER_PATH "/org/freedesktop/login1"
#define MANAGER_INTERFACE "org.freedesktop.login1.Manager"

static struct {
    int (*open_system)(sd_bus **);
    sd_bus *(*flush_close_unref)(sd_bus *);
    int (*add_match_async)(sd_bus *, void **, const char *, message_handler, message_handler, void *);
    int (*process)(sd_bus *, sd_bus_message **);
    int (*get_fd)(sd_bus *);
    int (*get_events)(sd_bus *);
    int (*get_timeout)(sd_bus *, uint64_t *);
    int (*call_method_async)(
        sd_bus *, void **, const char *, const char *, const char *, const char *, message_handler, void *,
        const char *, ...);
    int (*message_read)(sd_bus_message *, const char *, ...);
    int (*message_is_method_error)(sd_bus_message *, const char *);
} sd;

struct clogind {
    void (*handler)(void *, enum clogind_event);
    void *context;
    sd_bus *bus;
    pthread_t thread;
    // The descriptor that becomes readable when the thread must end.
    int ending;
    pthread_mutex_t lock;
    // The descriptor of the inhibitor lock, which delays the sleep while it is open; -1 without a lock.
    int inhibitor;
    // Whether the machine is about to sleep: a lock that arrives now must not delay it.
    bool suspending;
};

static bool open_library(char *error, size_t capacity) {
    static bool opened;
    if (opened) return true;
    const struct library_function wanted[] = {
        {"sd_bus_open_system", (void **)&sd.open_system},
        {"sd_bus_flush_close_unref", (void **)&sd.flush_close_unref},
        {"sd_bus_add_match_async", (void **)&sd.add_match_async},
        {"sd_bus_process", (void **)&sd.process},
        {"sd_bus_get_fd", (void **)&sd.get_fd},
        {"sd_bus_get_events", (void **)&sd.get_events},
        {"sd_bus_get_timeout", (void **)&sd.get_timeout},
        {"sd_bus_call_method_async", (void **)&sd.call_method_async},
        {"sd_bus_message_read", (void **)&sd.message_read},
        {"sd_bus_message_is_method_error", (void **)&sd.message_is_method_error},
    };
    static const char *const names[] = {"libsystemd.so.0", NULL};
    opened = library_load(names, wanted, sizeof wanted / sizeof *wanted, error, capacity);
    return opened;
}

// Keeps the lock that the manager has sent, unless the machine is already about to sleep.
static int handle_inhibitor(sd_bus_message *message, void *argument, void *unused) {
    (void)unused;
    struct clogind *logind = argument;
    int descriptor = -1;
    if (sd.message_is_method_error(message, NULL) || sd.message_read(message, "h", &descriptor) < 0) return 0;
    // The descriptor belongs to the message, so it is duplicated.
    int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    pthread_mutex_lock(&logind->lock);
    if (logind->inhibitor < 0 && !logind->suspending) {
        logind->inhibitor = own;
        own = -1;
    }
    pthread_mutex_unlock(&logind->lock);
    if (own >= 0) close(own);
    return 0;
}

static void hold_up(struct clogind *logind) {
    sd.call_method_async(
        logind->bus, NULL, MANAGER, MANAGER_PATH, MANAGER_INTERFACE, "Inhibit", handle_inhibitor, logind, "ssss",
        "sleep", "Lockstep", "The place in what plays is being saved", "delay");
}

static int handle_signal(sd_bus_message *message, void *argument, void *unused) {
    (void)unused;
    struct clogind *logind = argument;
    int suspends = 0;
    if (sd.message_read(message, "b", &suspends) < 0) return 0;
    pthread_mutex_lock(&logind->lock);
    logind->suspending = suspends;
    pthread_mutex_unlock(&logind->lock);
    if (!suspends) hold_up(logind);
    logind->handler(logind->context, suspends ? CLOGIND_SUSPENDS : CLOGIND_WAKES);
    return 0;
}

// Returns the timeout for `poll` in ms, from the bus's next deadline; -1 if there is none.
static int poll_timeout(sd_bus *bus) {
    uint64_t until;
    if (sd.get_timeout(bus, &until) < 0 || until == UINT64_MAX) return -1;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t now = (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
    if (until <= now) return 0;
    uint64_t wait = (until - now + 999) / 1000;
    return wait > 60000 ? 60000 : (int)wait;
}

static void *listen_to_bus(void *argument) {
    struct clogind *logind = argument;
    for (;;) {
        int result = sd.process(logind->bus, NULL);
        if (result > 0) continue;
        int events = result < 0 ? result : sd.get_events(logind->bus);
        if (events < 0) break;
        struct pollfd sources[2] = {
            {.fd = sd.get_fd(logind->bus), .events = (short)events},
            {.fd = logind->ending, .events = POLLIN},
        };
        if (poll(sources, 2, poll_timeout(logind->bus)) < 0 && errno != EINTR) break;
        if (sources[1].revents) return NULL;
    }
    clogind_release(logind);
    logind->handler(logind->context, CLOGIND_ENDS);
    return NULL;
}

struct clogind *clogind_open(
    void (*handler)(void *, enum clogind_event), void *context, char *error, size_t capacity) {
    if (!open_library(error, capacity)) return NULL;
    struct clogind *logind = calloc(1, sizeof *logind);
    int result = logind ? 0 : -ENOMEM;
    if (result == 0) {
        *logind = (struct clogind){.handler = handler, .context = context, .inhibitor = -1, .ending = -1};
        pthread_mutex_init(&logind->lock, NULL);
        result = sd.open_system(&logind->bus);
    }
    if (result >= 0) {
        result = sd.add_match_async(
            logind->bus, NULL,
            "type='signal',sender='" MANAGER "',path='" MANAGER_PATH "',interface='" MANAGER_INTERFACE
            "',member='PrepareForSleep'",
            handle_signal, NULL, logind);
    }
    if (result >= 0) {
        hold_up(logind);
        logind->ending = eventfd(0, EFD_CLOEXEC);
        result = logind->ending < 0 ? -errno : -pthread_create(&logind->thread, NULL, listen_to_bus, logind);
    }
    if (result >= 0) return logind;
    snprintf(error, capacity, "the system bus: %s", strerror(-result));
    if (logind) {
        if (logind->bus) sd.flush_close_unref(logind->bus);
        if (logind->ending >= 0) close(logind->ending);
        pthread_mutex_destroy(&logind->lock);
        free(logind);
    }
    return NULL;
}

void clogind_release(struct clogind *logind) {
    pthread_mutex_lock(&logind->lock);
    if (logind->inhibitor >= 0) close(logind->inhibitor);
    logind->inhibitor = -1;
    pthread_mutex_unlock(&logind->lock);
}

void clogind_close(struct clogind *logind) {
    uint64_t one = 1;
    ssize_t written = write(logind->ending, &one, sizeof one);
    (void)written;
    pthread_join(logind->thread, NULL);
    clogind_release(logind);
    sd.flush_close_unref(logind->bus);
    close(logind->ending);
    pthread_mutex_destroy(&logind->lock);
    free(logind);
}
#else
struct clogind *clogind_open(
    void (*handler)(void *, enum clogind_event), void *context, char *error, size_t capacity) {
    (void)handler;
    (void)context;
    snprintf(error, capacity, "this system has no login manager of systemd");
    return NULL;
}

void clogind_release(struct clogind *logind) { (void)logind; }
void clogind_close(struct clogind *logind) { (void)logind; }
#endif
