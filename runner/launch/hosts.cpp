#include "runner/launch/hosts.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"
#include "runner/job/message_rules.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kBlanks = " \t";

/// Of host and user names. A word that begins with a minus would be one of ssh's options.
bool is_ssh_name(std::string_view text, std::string_view also) {
  if (text.empty() || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(), [also](char c) {
    return is_alphanumeric(c) || also.find(c) != std::string_view::npos;
  });
}

std::optional<std::uint64_t> number_up_to(std::string_view text, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (number == 0 || number > most) return std::nullopt;
  return number;
}

/// What is wrong with `key=value`; empty: nothing, and the host has it.
std::string take_setting(Host& host, std::string_view key, std::string_view value) {
  constexpr std::uint64_t kMostSlots = 1024;
  constexpr std::uint64_t kMostPort = 65535;
  if (key == "slots" || key == "max_slots" || key == "max-slots") {
    const std::optional<std::uint64_t> slots = number_up_to(value, kMostSlots);
    if (!slots) return "the slots of a host are a number from 1 to 1024";
    if (key == "slots") host.slots = *slots;
    return {};
  }
  if (key == "port") {
    const std::optional<std::uint64_t> port = number_up_to(value, kMostPort);
    if (!port) return "a port is a number from 1 to 65535";
    host.port = static_cast<std::uint16_t>(*port);
    return {};
  }
  if (key == "address") {
    host.address = value;
    if (is_address(host.address)) return {};
    return fmt::format("`{}` is no IPv4 or IPv6 address", printable(value));
  }
  if (key == "user") {
    host.user = value;
    return is_ssh_name(value, "._-@\\$") ? "" : fmt::format("`{}` is no user", printable(value));
  }
  static const std::vector<std::string_view> known = {"slots", "address", "user", "port"};
  const std::string_view near = nearest(key, known);
  return fmt::format("a host has no `{}`{}", printable(key),
                     near.empty() ? ": it has slots, address, user, port"
                                  : fmt::format("; did you mean `{}`?", near));
}

struct Line {
  std::string_view text;
  int number;
  /// In characters, as people count.
  int column(std::string_view part) const {
    const auto at = static_cast<std::size_t>(part.data() - text.data());
    return static_cast<int>(utf8_length(text.substr(0, at))) + 1;
  }
};

std::vector<std::string_view> words_in(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
    words.push_back(word);
    line.remove_prefix(word.size());
  }
}

void read_host_line(const Line& line, std::vector<Host>& hosts, Mistakes& mistakes) {
  const std::vector<std::string_view> words = words_in(line.text);
  if (words.empty()) return;
  Host host;
  host.name = words.front();
  const auto complain = [&](std::string_view part, std::string message) {
    mistakes.add(line.number, line.column(part), std::move(message));
  };
  if (!is_ssh_name(host.name, ".-_:%")) {
    complain(words.front(), fmt::format("`{}` is no name of a host", printable(host.name)));
  }
  const auto same = [&host](const Host& other) { return other.name == host.name; };
  if (std::any_of(hosts.begin(), hosts.end(), same)) {
    complain(words.front(), fmt::format("`{}` stands here twice", printable(host.name)));
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equal = words[i].find('=');
    if (equal == std::string_view::npos) {
      complain(words[i], "after its host a line has `KEY=VALUE` alone");
      continue;
    }
    std::string wrong = take_setting(host, words[i].substr(0, equal), words[i].substr(equal + 1));
    if (!wrong.empty()) complain(words[i], std::move(wrong));
  }
  hosts.push_back(std::move(host));
}

}  // namespace

std::vector<Host> parse_hosts(const std::string& text, const fs::path& shown) {
  Mistakes mistakes{shown, text};
  std::vector<Host> hosts;
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    read_host_line({line, ++number}, hosts, mistakes);
  }
  if (!mistakes.empty()) throw mistakes.error("bad-hosts");
  if (hosts.empty()) throw usage_error("bad-hosts", "`{}` names no host", shown.string());
  return hosts;
}

std::vector<Host> hosts_of(const std::string& words) {
  std::error_code ignored;
  if (fs::is_regular_file(words, ignored)) {
    return parse_hosts(read_small_file(words, size_limit::kJobFile), words);
  }
  if (words.find('/') != std::string::npos) {
    throw usage_error("bad-hosts", "there is no file `{}`", words);
  }
  std::string lines = words;
  std::replace(lines.begin(), lines.end(), ',', '\n');
  if (lines.find_first_of("#= \t") != std::string::npos) {
    throw usage_error("bad-hosts", "`{}` is neither a file nor names between commas", words)
        .hint("what else there is to say of a host stands in a file, a host on each line");
  }
  std::vector<Host> hosts;
  for (const std::string_view name : split(lines, '\n')) {
    if (name.empty()) throw usage_error("bad-hosts", "there is an empty name in `{}`", words);
    for (Host& host : parse_hosts(std::string(name), "--hosts")) hosts.push_back(std::move(host));
  }
  return hosts;
}

std::uint64_t ranks_in_slots(const std::vector<Host>& hosts, std::optional<std::uint64_t> said) {
  if (hosts.empty()) return said.value_or(1);
  const auto fewer = [](const Host& a, const Host& b) { return a.slots < b.slots; };
  if (!said)
    return std::max<std::uint64_t>(1, std::min_element(hosts.begin(), hosts.end(), fewer)->slots);
  for (const Host& host : hosts) {
    if (host.slots == 0 || host.slots >= *said) continue;
    throw usage_error("bad-hosts", "`{}` takes {} (`slots={}`), and each node is to have {}",
                      host.name, counted(host.slots, "rank"), host.slots, *said)
        .hint(
            fmt::format("`--ranks-per-node {}`, or other slots in the file of hosts", host.slots));
  }
  return *said;
}

}  // namespace mlenv::job
