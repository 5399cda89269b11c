#include <algorithm>

#include "recipes/setup_py.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

class SetupCfg {
 public:
  SetupFacts read(std::string_view text) {
    for (const std::string_view line : split(text, '\n')) {
      ++number_;
      read_line(line);
    }
    return std::move(facts_);
  }

 private:
  void read_line(std::string_view line) {
    const std::string_view whole = trim(line);
    if (whole.empty() || whole.front() == '#' || whole.front() == ';') return;
    if (is_blank(line.front())) return take(whole);
    const std::size_t close = whole.find(']');
    if (whole.front() == '[' && close != std::string_view::npos) {
      section_ = trim(whole.substr(1, close - 1));
      key_.clear();
      return;
    }
    const std::size_t equal = whole.find_first_of("=:");
    if (equal == std::string_view::npos) return;
    key_ = to_lower(trim(whole.substr(0, equal)));
    if (section_ == "options" && key_ == "install_requires") facts_.line = number_;
    if (section_ == "options.extras_require") facts_.extras.emplace(key_, number_);
    take(trim(whole.substr(equal + 1)));
  }

  void take(std::string_view value) {
    if (value.empty()) return;
    if (section_ == "metadata" && key_ == "name" && !facts_.name) facts_.name = value;
    if (section_ != "options") return;
    if (key_ == "python_requires" && !facts_.python) facts_.python = value;
    if (key_ == "install_requires") requirement(value);
  }

  /// One, or `file: a, b`.
  void requirement(std::string_view value) {
    constexpr std::string_view kFile = "file:";
    if (value.starts_with(kFile)) {
      facts_.computed = true;
      for (const std::string_view name : split(value.substr(kFile.size()), ',')) {
        if (!trim(name).empty()) facts_.files.emplace_back(trim(name));
      }
      return;
    }
    if (!facts_.requires_) facts_.requires_ = SetupFacts::Texts{{}, number_};
    facts_.requires_->items.emplace_back(value);
  }

  SetupFacts facts_;
  std::string section_;
  std::string key_;
  int number_ = 0;
};

}  // namespace

SetupFacts read_setup_cfg(std::string_view text) { return SetupCfg().read(text); }

}  // namespace mlenv
