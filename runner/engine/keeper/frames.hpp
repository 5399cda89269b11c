#pragma once
// What comes from mlenv, and what is said to it (protocol.hpp).
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "runner/engine/keeper/protocol.hpp"

namespace mlenv::keeper {

/// Status of this program for a mlenv that cannot be reached or understood.
inline constexpr int kCannotReachMlenv = 97;

/// Owns its bytes and open files.
struct Frame {
  Head head;
  char* bytes = nullptr;
  std::array<int, kMostFiles> files{-1, -1, -1};
  std::size_t file_count = 0;

  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();
};

/// Takes numbers and texts from a frame's front.
class Reader {
 public:
  explicit Reader(const Frame& frame) : at_(frame.bytes), end_(frame.bytes + frame.head.bytes) {}
  template <class Value>
  Value take() {
    Value value{};
    if (static_cast<std::size_t>(end_ - at_) < sizeof value) std::_Exit(kCannotReachMlenv);
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  char* text() {
    char* const begin = at_;
    void* const nul = std::memchr(at_, 0, static_cast<std::size_t>(end_ - at_));
    if (nul == nullptr) std::_Exit(kCannotReachMlenv);
    at_ = static_cast<char*>(nul) + 1;
    return begin;
  }
  std::span<const char> rest() const { return {at_, end_}; }
  bool at_end() const { return at_ == end_; }

 private:
  char* at_;
  char* end_;
};

/// False when the other side is gone.
bool receive(int fd, Frame& frame);

/// The value's bytes with one open file, or none. Nobody may listen any more.
void say(int fd, Word kind, std::span<const char> bytes = {}, int file = -1);
template <class Value>
void say_value(int fd, Word kind, const Value& value) {
  say(fd, kind, {reinterpret_cast<const char*>(&value), sizeof value});  // NOLINT: its bytes
}

/// Whether it was done: 0, or why not.
void answer(int fd, int error, Failed::Step step = Failed::Step::files);

}  // namespace mlenv::keeper
