// Shared by the baselines: a clock, percentiles, and the output of rows.
#ifndef LOCKSTEP_MEASURE_H
#define LOCKSTEP_MEASURE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CHECK(condition, what)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, (what), strerror(errno));       \
            exit(70);                                                                              \
        }                                                                                          \
    } while (0)

// Returns the microseconds of CLOCK_MONOTONIC.
static inline double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the samples, and returns their percentile p (0…100).
static inline double percentile(double *samples, int count, double p) {
    qsort(samples, (size_t)count, sizeof *samples, compare_doubles);
    int index = (int)(p / 100.0 * (count - 1) + 0.5);
    return samples[index];
}

// Prints one row of the result as a line of JSON.
static inline void row(const char *name, double value, const char *unit) {
    printf("{\"name\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"}\n", name, value, unit);
    fflush(stdout);
}

// Raises the limit of descriptors to its maximum; a thousand subscribers need about four thousand.
static inline void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

#endif
