#pragma once
// The one exception type. A normal "no" (incompatible, absent, different) is a return value, not an
// Error. Frames run from the outermost intent to the root cause; cli/main.cpp alone prints them.
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace mlenv {

/// Decides the exit status: failed 1, usage 2 (the person asked wrongly), no 3 (the answer is no),
/// internal 70 (a bug in mlenv).
enum class Kind { failed, usage, no, internal };

/// What a hint would have a file of the person's say, for a program that follows hints: items to
/// add, by the file's keys: `system`, `build.requires.numpy`.
using Remedy = std::map<std::string, std::vector<std::string>>;

class Error : public std::exception {
 public:
  /// `code` is stable, kebab-case, documented in docs/errors.md and printed by `--json`.
  Error(Kind kind, std::string code, std::string headline);

  const char* what() const noexcept override { return text_.c_str(); }
  Kind kind() const { return kind_; }
  const std::string& code() const { return code_; }
  /// Outermost intent first, root cause last; never empty.
  const std::vector<std::string>& frames() const { return frames_; }
  const std::string& hint() const { return hint_; }
  /// Empty: none that leaves no choice.
  const Remedy& remedy() const { return remedy_; }

  /// Appends a deeper cause.
  Error& because(std::string cause) &;
  Error&& because(std::string cause) && { return std::move(because(std::move(cause))); }
  /// One action that works. The first hint given (the one nearest the cause) stays.
  Error& hint(std::string action) &;
  Error&& hint(std::string action) && { return std::move(hint(std::move(action))); }
  /// The first one given stays, too, and whatever hint it gets.
  Error& remedy(Remedy change) &;
  Error&& remedy(Remedy change) && { return std::move(remedy(std::move(change))); }
  /// The same with this hint in the place of its own; empty: with none.
  Error with_hint(std::string action) const;
  /// Puts an intent in front: what was being done when this happened.
  void while_doing(std::string intent);

 private:
  void join();
  Kind kind_;
  std::string code_;
  std::vector<std::string> frames_;
  std::string hint_;
  Remedy remedy_;
  std::string text_;
};

template <typename... Args>
Error failure(std::string code, fmt::format_string<Args...> format, Args&&... args) {
  return {Kind::failed, std::move(code), fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Error usage_error(std::string code, fmt::format_string<Args...> format, Args&&... args) {
  return {Kind::usage, std::move(code), fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Error refusal(std::string code, fmt::format_string<Args...> format, Args&&... args) {
  return {Kind::no, std::move(code), fmt::format(format, std::forward<Args>(args)...)};
}

/// Text of an errno value, thread-safe.
std::string errno_text(int error_number);

/// `error_number` comes first so that formatting cannot disturb errno. The code follows the errno:
/// `no-space` for ENOSPC and EDQUOT, `permission` for EACCES and EPERM, `absent` for ENOENT, else
/// `io`.
Error make_os_error(int error_number, std::string headline);
template <typename... Args>
Error os_error(int error_number, fmt::format_string<Args...> format, Args&&... args) {
  return make_os_error(error_number, fmt::format(format, std::forward<Args>(args)...));
}

/// Runs `work`; an Error that leaves it gains `intent` as its outermost frame.
template <typename Work>
decltype(auto) while_doing(std::string_view intent, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (Error& error) {
    error.while_doing(std::string(intent));
    throw;
  }
}

}  // namespace mlenv
