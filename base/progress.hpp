#pragma once
// What happens while it happens: libraries report here, cli/ draws (terminal, plain lines, JSON
// lines, nothing). Not for answers and not for logs. Every method may be called from any thread.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mlenv {

class Progress {
 public:
  virtual ~Progress() = default;
  /// Starts a named piece of work; `total` in `unit`s ("bytes", "packages"), 0 when unknown.
  /// Returns its number.
  virtual int begin(std::string_view name, std::uint64_t total, std::string_view unit) = 0;
  virtual void advance(int activity, std::uint64_t amount) = 0;
  /// `note` says what came of it ("cached", "12 packages").
  virtual void end(int activity, std::string_view note) = 0;
  /// A sentence worth a line of its own (a retry, a fallback).
  virtual void note(std::string_view sentence) = 0;
};

/// Draws nothing.
class QuietProgress final : public Progress {
 public:
  int begin(std::string_view, std::uint64_t, std::string_view) override { return 0; }
  void advance(int, std::uint64_t) override {}
  void end(int, std::string_view) override {}
  void note(std::string_view) override {}
};

/// One piece of work; ends with the object (note empty: done; "failed" when an exception passes).
class Activity {
 public:
  Activity(Progress& progress, std::string_view name, std::uint64_t total = 0,
           std::string_view unit = "bytes");
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  ~Activity();
  void advance(std::uint64_t amount) { progress_.advance(number_, amount); }
  void result(std::string note) { note_ = std::move(note); }

 private:
  Progress& progress_;
  int number_;
  int exceptions_;
  std::string note_;
};

}  // namespace mlenv
