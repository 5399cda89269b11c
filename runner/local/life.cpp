#include "runner/local/life.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostCountDigits = 9;

std::optional<std::uint64_t> small_number(std::string_view text) {
  if (text.empty() || text.size() > kMostCountDigits) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  return std::stoull(std::string(text));
}

}  // namespace

std::optional<RestartPolicy> RestartPolicy::parse(std::string_view text) {
  constexpr std::string_view kCounted = "on-failure:";
  RestartPolicy policy;
  policy.text = std::string(text);
  if (text == "no") return policy;
  if (text == "always" || text == "unless-stopped") {
    policy.when = When::always;
    return policy;
  }
  policy.when = When::on_failure;
  if (text == "on-failure") return policy;
  if (!text.starts_with(kCounted)) return std::nullopt;
  policy.most = small_number(text.substr(kCounted.size()));
  if (!policy.most) return std::nullopt;
  return policy;
}

bool RestartPolicy::again(const Exit& exit, std::uint64_t attempts) const {
  if (when == When::never || (when == When::on_failure && exit.code == 0)) return false;
  return !most || attempts <= *most;
}

std::optional<int> parse_signal(std::string_view text) {
  if (const auto number = small_number(text)) {
    const bool is_signal = *number > 0 && *number < NSIG;
    return is_signal ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
  }
  std::string name;
  for (const char c : text) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return std::nullopt;
}

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? "" : std::string("SIG") + name;
}

std::chrono::milliseconds BackOff::after(std::chrono::milliseconds attempt) {
  constexpr std::chrono::milliseconds kFirst{100};
  constexpr std::chrono::milliseconds kMost{60'000};
  constexpr std::chrono::milliseconds kLong{10'000};
  if (attempt >= kLong) next_ = kFirst;
  const std::chrono::milliseconds now = next_;
  next_ = std::min(next_ * 2, kMost);
  return now;
}

}  // namespace mlenv
