#pragma once
// Libraries that are opened at the first call of one of their functions. libcurl, libarchive,
// librnp and libsolvext bring some fifty others along; loading those with the program would take
// `mlenv run`, which calls none of them, as long as all that it does itself.
//
// A file NAME_late.cpp defines what is called of NAME, one line a function, under the function's
// own name and signature (the library's header says which), so that callers call it as ever:
//
//     LateLibrary library{MLENV_LATE_CURL};   // the soname that it was compiled against
//     MLENV_LATE_1(library, curl_easy_perform)
#include <cstddef>
#include <mutex>
#include <tuple>

namespace mlenv {

/// Safe to use from several threads. Never closed.
class LateLibrary {
 public:
  /// `soname` outlives it.
  constexpr explicit LateLibrary(const char* soname) : soname_(soname) {}
  /// The function of that name. Throws `no-library` when the library is absent or too old.
  void* function(const char* name);

 private:
  const char* soname_;
  std::once_flag opened_;
  void* handle_ = nullptr;
};

/// Result and parameters of a function's type.
template <class Function>
struct SignatureOf;
template <class Returned, class... Parameters>
struct SignatureOf<Returned(Parameters...)> {
  using Result = Returned;
  template <std::size_t kIndex>
  using Parameter = std::tuple_element_t<kIndex, std::tuple<Parameters...>>;
};
template <class Returned, class... Parameters>
struct SignatureOf<Returned(Parameters...) noexcept> : SignatureOf<Returned(Parameters...)> {};

}  // namespace mlenv

// NOLINTBEGIN(cppcoreguidelines-macro-usage,bugprone-macro-parentheses): they define functions
// The definition has a name of its own here, and the library's for the linker, so that it need not
// name its parameters as the library's header does.
#define MLENV_LATE_FUNCTION(library, name) \
  static auto* const function = reinterpret_cast<decltype(&::name)>((library).function(#name))
#define MLENV_LATE_RESULT(name) mlenv::SignatureOf<decltype(::name)>::Result
#define MLENV_LATE_PARAMETER(name, index) mlenv::SignatureOf<decltype(::name)>::Parameter<index>
#define MLENV_LATE_DEFINE(library, name, parameters, arguments)             \
  extern "C" MLENV_LATE_RESULT(name) late_##name parameters __asm__(#name); \
  extern "C" MLENV_LATE_RESULT(name) late_##name parameters {               \
    MLENV_LATE_FUNCTION(library, name);                                     \
    return function arguments;                                              \
  }

#define MLENV_LATE_0(library, name) MLENV_LATE_DEFINE(library, name, (), ())
#define MLENV_LATE_1(library, name) \
  MLENV_LATE_DEFINE(library, name, (MLENV_LATE_PARAMETER(name, 0) a), (a))
#define MLENV_LATE_2(library, name) \
  MLENV_LATE_DEFINE(library, name,  \
                    (MLENV_LATE_PARAMETER(name, 0) a, MLENV_LATE_PARAMETER(name, 1) b), (a, b))
#define MLENV_LATE_3(library, name)                                                    \
  MLENV_LATE_DEFINE(library, name,                                                     \
                    (MLENV_LATE_PARAMETER(name, 0) a, MLENV_LATE_PARAMETER(name, 1) b, \
                     MLENV_LATE_PARAMETER(name, 2) c),                                 \
                    (a, b, c))
#define MLENV_LATE_4(library, name)                                                     \
  MLENV_LATE_DEFINE(library, name,                                                      \
                    (MLENV_LATE_PARAMETER(name, 0) a, MLENV_LATE_PARAMETER(name, 1) b,  \
                     MLENV_LATE_PARAMETER(name, 2) c, MLENV_LATE_PARAMETER(name, 3) d), \
                    (a, b, c, d))
#define MLENV_LATE_5(library, name)                                                    \
  MLENV_LATE_DEFINE(library, name,                                                     \
                    (MLENV_LATE_PARAMETER(name, 0) a, MLENV_LATE_PARAMETER(name, 1) b, \
                     MLENV_LATE_PARAMETER(name, 2) c, MLENV_LATE_PARAMETER(name, 3) d, \
                     MLENV_LATE_PARAMETER(name, 4) e),                                 \
                    (a, b, c, d, e))
#define MLENV_LATE_6(library, name)                                                     \
  MLENV_LATE_DEFINE(library, name,                                                      \
                    (MLENV_LATE_PARAMETER(name, 0) a, MLENV_LATE_PARAMETER(name, 1) b,  \
                     MLENV_LATE_PARAMETER(name, 2) c, MLENV_LATE_PARAMETER(name, 3) d,  \
                     MLENV_LATE_PARAMETER(name, 4) e, MLENV_LATE_PARAMETER(name, 5) f), \
                    (a, b, c, d, e, f))
#define MLENV_LATE_7(library, name)                                                    \
  MLENV_LATE_DEFINE(library, name,                                                     \
                    (MLENV_LATE_PARAMETER(name, 0) a, MLENV_LATE_PARAMETER(name, 1) b, \
                     MLENV_LATE_PARAMETER(name, 2) c, MLENV_LATE_PARAMETER(name, 3) d, \
                     MLENV_LATE_PARAMETER(name, 4) e, MLENV_LATE_PARAMETER(name, 5) f, \
                     MLENV_LATE_PARAMETER(name, 6) g),                                 \
                    (a, b, c, d, e, f, g))
// NOLINTEND(cppcoreguidelines-macro-usage,bugprone-macro-parentheses)
