// What is called of libcurl.
#include <cstdarg>

#include <curl/curl.h>

#include "base/late_library.hpp"

namespace {
mlenv::LateLibrary curl_library{MLENV_LATE_CURL};
}  // namespace

// Macros of its header that check or pass on.
#undef curl_easy_setopt
#undef curl_easy_getinfo

MLENV_LATE_1(curl_library, curl_easy_cleanup)
MLENV_LATE_0(curl_library, curl_easy_init)
MLENV_LATE_1(curl_library, curl_easy_perform)
MLENV_LATE_1(curl_library, curl_easy_reset)
MLENV_LATE_1(curl_library, curl_easy_strerror)
MLENV_LATE_1(curl_library, curl_free)
MLENV_LATE_1(curl_library, curl_global_init)
MLENV_LATE_2(curl_library, curl_slist_append)
MLENV_LATE_1(curl_library, curl_slist_free_all)
MLENV_LATE_0(curl_library, curl_url)
MLENV_LATE_1(curl_library, curl_url_cleanup)
MLENV_LATE_4(curl_library, curl_url_get)
MLENV_LATE_4(curl_library, curl_url_set)
MLENV_LATE_1(curl_library, curl_url_strerror)
MLENV_LATE_1(curl_library, curl_version_info)

// Their third argument is a long, a curl_off_t or a pointer: each is passed as a pointer is, where
// mlenv runs (the psABIs of x86-64, section 3.2.3, and of AArch64, section 6.8.2).
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wvarargs"  // of enumerations; libcurl's own definition, too
#endif
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));

extern "C" CURLcode late_setopt(CURL* curl, CURLoption option, ...) __asm__("curl_easy_setopt");
extern "C" CURLcode late_setopt(CURL* curl, CURLoption option, ...) {
  MLENV_LATE_FUNCTION(curl_library, curl_easy_setopt);
  std::va_list rest;
  va_start(rest, option);
  void* const value = va_arg(rest, void*);
  va_end(rest);
  return function(curl, option, value);
}

extern "C" CURLcode late_getinfo(CURL* curl, CURLINFO info, ...) __asm__("curl_easy_getinfo");
extern "C" CURLcode late_getinfo(CURL* curl, CURLINFO info, ...) {
  MLENV_LATE_FUNCTION(curl_library, curl_easy_getinfo);
  std::va_list rest;
  va_start(rest, info);
  void* const value = va_arg(rest, void*);
  va_end(rest);
  return function(curl, info, value);
}
