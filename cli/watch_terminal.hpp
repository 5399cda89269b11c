#pragma once
// The terminal while a run is watched: a screen of its own, keys as they are typed, and signals as
// something to wait for. It is as it was before when this ends.
#include <termios.h>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "base/handle.hpp"

namespace mlenv::cli {

/// What ends a wait.
enum class WatchEvent { time, resize, leave };

class WatchTerminal {
 public:
  /// `draws`: on standard error's terminal; else it waits alone.
  explicit WatchTerminal(bool draws);
  WatchTerminal(const WatchTerminal&) = delete;
  WatchTerminal& operator=(const WatchTerminal&) = delete;
  ~WatchTerminal();

  bool draws() const { return draws_; }
  /// Until then, a key (`q`), Ctrl-C or its kin, or another size.
  WatchEvent wait_until(std::chrono::steady_clock::time_point when);
  struct Size {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };
  Size size() const;
  /// In one write, each line over what was there: nothing flickers.
  void show(const std::vector<std::string>& lines) const;

 private:
  WatchEvent take_signals() const;
  bool key_leaves() const;

  bool draws_;
  bool keys_ = false;
  termios before_{};
  sigset_t mask_before_{};
  Fd signals_;
};

}  // namespace mlenv::cli
