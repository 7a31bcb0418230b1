#include "CCurl.h"

#include <CLibraryLoader.h>
#include <pthread.h>
#include <stdio.h>

// The functions are declared in libcurl's headers, some behind macros that check types: these pointers have their types
// and names of their own.
static struct {
    CURLcode (*global_init)(long);
    curl_version_info_data *(*version_info)(CURLversion);
    const char *(*easy_strerror)(CURLcode);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_cleanup)(CURLM *);
    CURLMcode (*multi_setopt)(CURLM *, CURLMoption, ...);
    CURLMcode (*multi_add_handle)(CURLM *, CURL *);
    CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
    CURLMcode (*multi_perform)(CURLM *, int *);
    CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned int, int, int *);
    CURLMcode (*multi_wakeup)(CURLM *);
    CURLMsg *(*multi_info_read)(CURLM *, int *);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *);
    void (*easy_reset)(CURL *);
    CURLcode (*easy_pause)(CURL *, int);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
} functions;

// 7.80, the first version with the callback for an established connection.
static const unsigned int oldest_version = 0x075000;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool opened;
static bool brotli;
static char failure[256];

static void open_library(void) {
    const struct library_function wanted[] = {
        {"curl_global_init", (void **)&functions.global_init},
        {"curl_version_info", (void **)&functions.version_info},
        {"curl_easy_strerror", (void **)&functions.easy_strerror},
        {"curl_multi_init", (void **)&functions.multi_init},
        {"curl_multi_cleanup", (void **)&functions.multi_cleanup},
        {"curl_multi_setopt", (void **)&functions.multi_setopt},
        {"curl_multi_add_handle", (void **)&functions.multi_add_handle},
        {"curl_multi_remove_handle", (void **)&functions.multi_remove_handle},
        {"curl_multi_perform", (void **)&functions.multi_perform},
        {"curl_multi_poll", (void **)&functions.multi_poll},
        {"curl_multi_wakeup", (void **)&functions.multi_wakeup},
        {"curl_multi_info_read", (void **)&functions.multi_info_read},
        {"curl_easy_init", (void **)&functions.easy_init},
        {"curl_easy_cleanup", (void **)&functions.easy_cleanup},
        {"curl_easy_reset", (void **)&functions.easy_reset},
        {"curl_easy_pause", (void **)&functions.easy_pause},
        {"curl_easy_setopt", (void **)&functions.easy_setopt},
        {"curl_easy_getinfo", (void **)&functions.easy_getinfo},
        {"curl_slist_append", (void **)&functions.slist_append},
        {"curl_slist_free_all", (void **)&functions.slist_free_all},
    };
    static const char *const names[] = {"libcurl.so.4", NULL};
    if (!library_load(names, wanted, sizeof wanted / sizeof *wanted, failure, sizeof failure)) return;
    // In older versions this isn't thread-safe: it is called once, before any other use.
    if (functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(failure, sizeof failure, "libcurl cannot be initialised");
        return;
    }
    const curl_version_info_data *info = functions.version_info(CURLVERSION_NOW);
    if (info->version_num < oldest_version) {
        snprintf(failure, sizeof failure, "libcurl %s is too old; 7.80 or later is needed", info->version);
        return;
    }
    brotli = (info->features & CURL_VERSION_BROTLI) != 0;
    opened = true;
}

bool ccurl_open(char *error, size_t capacity) {
    pthread_once(&once, open_library);
    if (!opened) snprintf(error, capacity, "%s", failure);
    return opened;
}

bool ccurl_has_brotli(void) { return brotli; }
const char *ccurl_error_string(CURLcode code) { return functions.easy_strerror(code); }

CURLM *ccurl_multi_new(void) { return functions.multi_init(); }
void ccurl_multi_free(CURLM *multi) { functions.multi_cleanup(multi); }

CURLMcode ccurl_multi_set(CURLM *multi, CURLMoption option, long value) {
    return functions.multi_setopt(multi, option, value);
}

CURLMcode ccurl_multi_add(CURLM *multi, CURL *easy) { return functions.multi_add_handle(multi, easy); }
CURLMcode ccurl_multi_remove(CURLM *multi, CURL *easy) { return functions.multi_remove_handle(multi, easy); }

CURLMcode ccurl_multi_perform(CURLM *multi) {
    int running = 0;
    return functions.multi_perform(multi, &running);
}

CURLMcode ccurl_multi_poll(CURLM *multi, int milliseconds) {
    return functions.multi_poll(multi, NULL, 0, milliseconds, NULL);
}

CURLMcode ccurl_multi_wakeup(CURLM *multi) { return functions.multi_wakeup(multi); }

CURL *ccurl_multi_ended(CURLM *multi, CURLcode *outcome) {
    int left = 0;
    CURLMsg *message;
    while ((message = functions.multi_info_read(multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        *outcome = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

CURL *ccurl_easy_new(void) { return functions.easy_init(); }
void ccurl_easy_free(CURL *easy) { functions.easy_cleanup(easy); }
void ccurl_easy_reset(CURL *easy) { functions.easy_reset(easy); }

CURLcode ccurl_easy_pause(CURL *easy, bool pauses) {
    return functions.easy_pause(easy, pauses ? CURLPAUSE_RECV : CURLPAUSE_CONT);
}

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return functions.easy_setopt(easy, option, value);
}

CURLcode ccurl_set_text(CURL *easy, CURLoption option, const char *value) {
    return functions.easy_setopt(easy, option, value);
}

CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list) {
    return functions.easy_setopt(easy, option, list);
}

CURLcode ccurl_set_callbacks(
    CURL *easy, ccurl_bytes body, ccurl_bytes header, ccurl_connected connected, void *context, char *error) {
    CURLcode code = functions.easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
    if (!code) code = functions.easy_setopt(easy, CURLOPT_WRITEDATA, context);
    if (!code) code = functions.easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    if (!code) code = functions.easy_setopt(easy, CURLOPT_HEADERDATA, context);
    if (!code) code = functions.easy_setopt(easy, CURLOPT_PREREQFUNCTION, connected);
    if (!code) code = functions.easy_setopt(easy, CURLOPT_PREREQDATA, context);
    if (!code) code = functions.easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    return code;
}

long ccurl_get_long(CURL *easy, CURLINFO info) {
    long value = 0;
    return functions.easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

struct curl_slist *ccurl_list_append(struct curl_slist *list, const char *text) {
    return functions.slist_append(list, text);
}

void ccurl_list_free(struct curl_slist *list) { functions.slist_free_all(list); }
