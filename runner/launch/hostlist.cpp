#include "runner/launch/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kMostNodesListed = 10000;

struct Unreadable {};

std::uint64_t host_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) throw Unreadable{};
  return number;
}

/// `007-010` or `5`: with as many digits as the first number has.
std::vector<std::string> expand_range(std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  const std::uint64_t from = host_number(first);
  const std::uint64_t to = host_number(last);
  constexpr std::size_t kMostDigits = 20;
  if (to < from || to - from >= kMostNodesListed || first.size() > kMostDigits) throw Unreadable{};
  std::vector<std::string> numbers;
  for (std::uint64_t number = from; number <= to; ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
  return numbers;
}

std::vector<std::string> expand_numbers(std::string_view ranges) {
  std::vector<std::string> all;
  for (const std::string_view range : split(ranges, ',')) {
    for (std::string& number : expand_range(range)) all.push_back(std::move(number));
  }
  return all;
}

/// A host's: it becomes a word for srun and ssh, a file's name, and a line of /etc/hosts.
bool is_node_name(std::string_view name) {
  return !name.empty() && is_alphanumeric(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

/// A name with bracketed parts, of which Slurm itself has three at most.
std::vector<std::string> expand_name(std::string_view name, unsigned parts = 0) {
  constexpr unsigned kMostParts = 16;
  const std::size_t open = name.find('[');
  if (parts > kMostParts) throw Unreadable{};
  if (open == std::string_view::npos) {
    if (name.empty() || name.find(']') != std::string_view::npos) throw Unreadable{};
    return {std::string(name)};
  }
  const std::size_t close = name.find(']', open);
  if (close == std::string_view::npos) throw Unreadable{};
  const std::string_view rest = name.substr(close + 1);
  const std::vector<std::string> ends =
      rest.empty() ? std::vector<std::string>{""} : expand_name(rest, parts + 1);
  std::vector<std::string> names;
  for (const std::string& number : expand_numbers(name.substr(open + 1, close - open - 1))) {
    for (const std::string& end : ends) {
      if (names.size() == kMostNodesListed) throw Unreadable{};
      names.push_back(std::string(name.substr(0, open)) + number + end);
    }
  }
  return names;
}

/// At the commas outside of brackets.
std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      names.push_back(list.substr(start, i - start));
      start = i + 1;
    } else if (list[i] == '[' || list[i] == ']') {
      inside = list[i] == '[';
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view list) {
  std::vector<std::string> nodes;
  try {
    for (const std::string_view name : names_in(list)) {
      for (std::string& node : expand_name(name)) {
        if (!is_node_name(node)) throw Unreadable{};
        nodes.push_back(std::move(node));
      }
      if (nodes.size() > kMostNodesListed) throw Unreadable{};
    }
  } catch (const Unreadable&) {
    throw failure("no-node", "Slurm's list of nodes cannot be read: `{}`",
                  printable(list.substr(0, 500)));
  }
  return nodes;
}

}  // namespace mlenv::job
