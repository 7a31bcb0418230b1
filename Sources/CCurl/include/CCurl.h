#ifndef LOCKSTEP_CCURL_H
#define LOCKSTEP_CCURL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

// Options that the headers of the oldest version do not name; their numbers are part of the library's interface.
static const CURLoption CCURL_PROTOCOLS_STR = (CURLoption)(CURLOPTTYPE_STRINGPOINT + 318);
static const CURLoption CCURL_REDIR_PROTOCOLS_STR = (CURLoption)(CURLOPTTYPE_STRINGPOINT + 319);
static const CURLoption CCURL_QUICK_EXIT = (CURLoption)(CURLOPTTYPE_LONG + 322);

// Called with bytes of a body or a header line. Returns the number of accepted bytes; fewer end the transfer.
typedef size_t (*ccurl_bytes)(char *_Nonnull bytes, size_t size, size_t count, void *_Nullable context);
// Called when the connection is established, before the request is sent.
typedef int (*ccurl_connected)(
    void *_Nullable context, char *_Nullable remote, char *_Nullable local, int remote_port, int local_port);

// Opens libcurl, once per process, and initialises it; false with a sentence in `error` when it is not installed, too
// old, or lacks a function. Any thread may call it. It is never closed. All functions below require its success.
bool ccurl_open(char *_Nonnull error, size_t capacity);

// Whether this libcurl decodes brotli.
bool ccurl_has_brotli(void);
const char *_Nonnull ccurl_error_string(CURLcode code);

CURLM *_Nullable ccurl_multi_new(void);
void ccurl_multi_free(CURLM *_Nonnull multi);
CURLMcode ccurl_multi_set(CURLM *_Nonnull multi, CURLMoption option, long value);
CURLMcode ccurl_multi_add(CURLM *_Nonnull multi, CURL *_Nonnull easy);
CURLMcode ccurl_multi_remove(CURLM *_Nonnull multi, CURL *_Nonnull easy);
CURLMcode ccurl_multi_perform(CURLM *_Nonnull multi);
CURLMcode ccurl_multi_poll(CURLM *_Nonnull multi, int milliseconds);
// May be called from any thread while the handle exists.
CURLMcode ccurl_multi_wakeup(CURLM *_Nonnull multi);
// Returns the next transfer that has ended, with its outcome; null if there is none.
CURL *_Nullable ccurl_multi_ended(CURLM *_Nonnull multi, CURLcode *_Nonnull outcome);

CURL *_Nullable ccurl_easy_new(void);
void ccurl_easy_free(CURL *_Nonnull easy);
void ccurl_easy_reset(CURL *_Nonnull easy);
CURLcode ccurl_easy_pause(CURL *_Nonnull easy, bool pauses);
CURLcode ccurl_set_long(CURL *_Nonnull easy, CURLoption option, long value);
// libcurl copies the text.
CURLcode ccurl_set_text(CURL *_Nonnull easy, CURLoption option, const char *_Nullable value);
// The list must exist until the transfer has ended.
CURLcode ccurl_set_list(CURL *_Nonnull easy, CURLoption option, struct curl_slist *_Nullable list);
// Sets the three callbacks, their context, and the buffer of at least CURL_ERROR_SIZE bytes for libcurl's error
// message. The context and the buffer must exist until the transfer has ended.
CURLcode ccurl_set_callbacks(
    CURL *_Nonnull easy, ccurl_bytes _Nonnull body, ccurl_bytes _Nonnull header, ccurl_connected _Nonnull connected,
    void *_Nonnull context, char *_Nonnull error);
long ccurl_get_long(CURL *_Nonnull easy, CURLINFO info);

// Returns the list with a copy of the text at its end; null if there is no memory.
struct curl_slist *_Nullable ccurl_list_append(struct curl_slist *_Nullable list, const char *_Nonnull text);
void ccurl_list_free(struct curl_slist *_Nullable list);

#endif
