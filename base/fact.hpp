#pragma once
// One thing known, or not known, of a host or an image.
#include <optional>
#include <string>
#include <utility>

namespace mlenv {

/// `value` with the file, call or program that it comes from. Without a value it is unknown, which
/// is never a "no", and `source` says why: what was asked, and what came of it.
template <class T>
struct Fact {
  std::optional<T> value;
  std::string source;

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  friend bool operator==(const Fact&, const Fact&) = default;
};

template <class T>
Fact<T> known(T value, std::string source) {
  return {std::move(value), std::move(source)};
}
template <class T>
Fact<T> unknown(std::string why) {
  return {std::nullopt, std::move(why)};
}

/// What `read` (which returns an optional) makes of a value; `SOURCE: not understood` where that is
/// nothing. An unknown one stays so, for the same reason.
template <class T, class From, class Read>
Fact<T> derived(const Fact<From>& from, Read&& read) {
  if (!from) return unknown<T>(from.source);
  std::optional<T> value = std::forward<Read>(read)(*from);
  if (!value) return unknown<T>(from.source + ": not understood");
  return {std::move(value), from.source};
}

}  // namespace mlenv
