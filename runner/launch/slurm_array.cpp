#include "runner/launch/slurm_array.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kTaskFields = 4;

}  // namespace

std::string array_words(const std::vector<std::uint64_t>& numbers,
                        std::optional<std::uint64_t> at_once) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  if (at_once) text += fmt::format("%{}", *at_once);
  return text;
}

std::string array_task(std::string_view array, std::uint64_t number) {
  return fmt::format("{}_{}", array, number);
}

ArrayQueue parse_array_queue(std::string_view text) {
  ArrayQueue queue;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> parts = split(trim(line), '|');
    if (parts.size() != kTaskFields) continue;
    const std::optional<std::uint64_t> number = number_from<std::uint64_t>(parts[0]);
    if (!number) continue;
    SlurmState& state = queue[*number];
    state.state = parts[1];
    if (parts[2] != "None") state.reason = parts[2];
    state.nodes = parts[3];
  }
  return queue;
}

std::optional<ArrayQueue> ask_slurm_array(const std::string& array) try {
  const Captured told =
      ask_program({"squeue", "--noheader", "--array", "--format=%K|%T|%r|%N", "--jobs=" + array});
  if (told.exit.code == 0) return parse_array_queue(told.out);
  if (told.err.find("Invalid job id") == std::string::npos) return std::nullopt;
  return ArrayQueue{};
} catch (const Error& error) {
  if (error.code() == "no-slurm") throw;
  return std::nullopt;  // it hangs, as its daemon does
}

}  // namespace mlenv::job
