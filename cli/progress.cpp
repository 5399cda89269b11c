// Three ways to draw progress, all on stderr.
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cli/progress_detail.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {
namespace {

using std::chrono::steady_clock;

void print_aside(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

std::string elapsed_text(steady_clock::time_point start) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start).count();
  return fmt::format("{}.{} s", ms / 1000, ms % 1000 / 100);
}

struct ShownActivity {
  std::string name;
  std::uint64_t total = 0;
  std::uint64_t done = 0;
  std::string unit;
  steady_clock::time_point start;
  std::string detail{};
};

/// Keeps the activities; subclasses draw. One lock serialises all drawing.
class Tracker : public Progress {
 public:
  int begin(std::string_view name, std::uint64_t total, std::string_view unit) final {
    const std::lock_guard lock{mutex_};
    const int number = next_++;
    shown_[number] = {printable(name), total, 0, std::string(unit), steady_clock::now()};
    begun(number, shown_[number]);
    return number;
  }
  void advance(int activity, std::uint64_t amount) final {
    const std::lock_guard lock{mutex_};
    const auto at = shown_.find(activity);
    if (at == shown_.end()) return;
    at->second.done += amount;
    advanced(activity, at->second);
  }
  void end(int activity, std::string_view note) final {
    const std::lock_guard lock{mutex_};
    const auto at = shown_.find(activity);
    if (at == shown_.end()) return;
    const ShownActivity shown = at->second;
    shown_.erase(at);
    ended(activity, shown, printable(note));
  }
  void note(std::string_view sentence) final {
    const std::lock_guard lock{mutex_};
    noted(printable(sentence));
  }
  void detail(int activity, std::string_view text) {
    const std::lock_guard lock{mutex_};
    const auto at = shown_.find(activity);
    if (at == shown_.end()) return;
    at->second.detail = printable(text);
  }

 protected:
  virtual void begun(int /*number*/, const ShownActivity& /*shown*/) {}
  virtual void advanced(int /*number*/, const ShownActivity& /*shown*/) {}
  virtual void ended(int number, const ShownActivity& shown, std::string_view note) = 0;
  virtual void noted(std::string_view sentence) = 0;
  static std::string ended_line(const ShownActivity& shown, std::string_view note) {
    std::string line = shown.name;
    if (shown.unit == "bytes" && shown.total > 0) line += ", " + human_bytes(shown.total);
    if (shown.unit == "packages" && shown.total > 0) line += fmt::format(", {}", shown.total);
    line += ", " + elapsed_text(shown.start);
    if (!note.empty()) line += fmt::format(" ({})", note);
    return line;
  }
  std::map<int, ShownActivity> shown_;

 private:
  std::mutex mutex_;
  int next_ = 1;
};

class PlainProgress final : public Tracker {
 protected:
  void ended(int, const ShownActivity& shown, std::string_view note) override {
    print_aside(ended_line(shown, note) + "\n");
  }
  void noted(std::string_view sentence) override { print_aside(std::string(sentence) + "\n"); }
};

class JsonProgress final : public Tracker {
 protected:
  void begun(int number, const ShownActivity& shown) override {
    line({{"event", "begin"},
          {"activity", number},
          {"name", shown.name},
          {"total", shown.total},
          {"unit", shown.unit}});
  }
  void ended(int number, const ShownActivity& shown, std::string_view note) override {
    line({{"event", "end"}, {"activity", number}, {"name", shown.name}, {"note", note}});
  }
  void noted(std::string_view sentence) override { line({{"event", "note"}, {"text", sentence}}); }

 private:
  static void line(nlohmann::json value) {
    value["schema"] = "mlenv.progress/1";
    print_aside(canonical(value) + "\n");
  }
};

/// Finished lines scroll away above; what runs is a block below them, redrawn ten times a second.
class TerminalProgress final : public Tracker {
 public:
  TerminalProgress() = default;
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  ~TerminalProgress() override { erase(); }

 protected:
  void begun(int, const ShownActivity&) override { redraw(); }
  void advanced(int, const ShownActivity&) override {
    if (steady_clock::now() - drawn_ >= std::chrono::milliseconds{100}) redraw();
  }
  void ended(int, const ShownActivity& shown, std::string_view note) override {
    erase();
    const bool failed = note.starts_with("failed") || note.starts_with("stopped");
    print_aside((failed ? "  ✗ " : "  ✓ ") + ended_line(shown, note) + "\n");
    redraw();
  }
  void noted(std::string_view sentence) override {
    erase();
    print_aside("  " + std::string(sentence) + "\n");
    redraw();
  }

 private:
  static int columns() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
  }
  /// At most so many bytes, without a part of a character.
  static std::size_t whole_characters(std::string_view text, std::size_t most) {
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
    return most;
  }
  void erase() {
    if (lines_ > 0) print_aside("\r\033[2K");  // a `^C` that the terminal has shown
    for (; lines_ > 0; --lines_) print_aside("\033[1A\033[2K");
  }
  void redraw() {
    erase();
    constexpr std::size_t kMost = 12;
    const auto width = static_cast<std::size_t>(std::max(columns() - 1, 20));
    for (const auto& [number, shown] : shown_) {
      if (lines_ == kMost) break;
      std::string line = "  · " + shown.name;
      if (shown.total > 0 && shown.unit == "bytes") {
        line += fmt::format("  {} / {}", human_bytes(shown.done), human_bytes(shown.total));
      } else if (shown.total > 0) {
        line += fmt::format("  {} / {} {}", shown.done, shown.total, shown.unit);
      }
      if (!shown.detail.empty()) line += "  " + shown.detail;
      if (line.size() > width) line.resize(whole_characters(line, width));
      print_aside(line + "\n");
      ++lines_;
    }
    drawn_ = steady_clock::now();
  }
  std::size_t lines_ = 0;
  steady_clock::time_point drawn_;
};

}  // namespace

bool shows_details(const Progress& progress) {
  return dynamic_cast<const TerminalProgress*>(&progress) != nullptr;
}

void show_detail(Progress& progress, int activity, std::string_view text) {
  if (auto* const drawn = dynamic_cast<TerminalProgress*>(&progress)) drawn->detail(activity, text);
}

std::unique_ptr<Progress> make_progress(std::string_view mode, bool quiet) {
  if (quiet || mode == "none") return std::make_unique<QuietProgress>();
  if (mode == "json") return std::make_unique<JsonProgress>();
  if (mode == "tty") return std::make_unique<TerminalProgress>();
  return std::make_unique<PlainProgress>();
}

}  // namespace mlenv::cli
