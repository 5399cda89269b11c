#include "runner/job/words.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

template <class Value>
struct Word {
  std::string_view name;
  Value value;
};
constexpr std::array<Word<Strategy>, 4> kStrategies = {
    {{"plain", Strategy::plain},
     {"allreduce", Strategy::allreduce},
     {"parameter-server", Strategy::parameter_server},
     {"mpi", Strategy::mpi}}};
constexpr std::array<Word<Framework>, 5> kFrameworks = {{{"none", Framework::none},
                                                         {"torch", Framework::torch},
                                                         {"jax", Framework::jax},
                                                         {"tensorflow", Framework::tensorflow},
                                                         {"mpi", Framework::mpi}}};

template <class Value>
std::string_view name_in(std::span<const Word<Value>> words, Value value) {
  for (const Word<Value>& word : words) {
    if (word.value == value) return word.name;
  }
  return {};
}

template <class Value>
std::optional<Value> word_value(std::span<const Word<Value>> words, std::string_view name) {
  for (const Word<Value>& word : words) {
    if (word.name == name) return word.value;
  }
  return std::nullopt;
}

template <class Value>
std::vector<std::string_view> names_of_words(std::span<const Word<Value>> words) {
  std::vector<std::string_view> names;
  names.reserve(words.size());
  for (const Word<Value>& word : words) names.push_back(word.name);
  return names;
}

constexpr std::uint64_t kMostNodesAsked = 65535;

std::optional<std::uint64_t> node_count_in(std::string_view text) {
  constexpr std::size_t kDigits = 5;
  if (text.empty() || text.size() > kDigits || !all_digits(text)) return std::nullopt;
  const std::uint64_t count = std::stoul(std::string(text));
  if (count == 0 || count > kMostNodesAsked) return std::nullopt;
  return count;
}

}  // namespace

std::string_view name_of(Strategy strategy) {
  return name_in(std::span<const Word<Strategy>>(kStrategies), strategy);
}
std::string_view name_of(Framework framework) {
  return name_in(std::span<const Word<Framework>>(kFrameworks), framework);
}
std::optional<Strategy> strategy_of(std::string_view name) {
  return word_value(std::span<const Word<Strategy>>(kStrategies), name);
}
std::optional<Framework> framework_of(std::string_view name) {
  if (name == "pytorch") return Framework::torch;
  return word_value(std::span<const Word<Framework>>(kFrameworks), name);
}
std::vector<std::string_view> strategy_names() {
  return names_of_words(std::span<const Word<Strategy>>(kStrategies));
}
std::vector<std::string_view> framework_names() {
  return names_of_words(std::span<const Word<Framework>>(kFrameworks));
}

std::optional<NodeCount> node_count_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = node_count_in(text.substr(0, colon));
  const auto most = colon == std::string_view::npos ? least : node_count_in(text.substr(colon + 1));
  if (!least || !most || *least > *most) return std::nullopt;
  return NodeCount{*least, *most};
}

std::string text_of(const NodeCount& nodes) {
  if (nodes.least == nodes.most) return std::to_string(nodes.least);
  return fmt::format("{}:{}", nodes.least, nodes.most);
}

Framework framework_of(const ImageFacts& image) {
  if (!image.frameworks) return Framework::none;
  for (const Framework one : {Framework::torch, Framework::jax, Framework::tensorflow}) {
    const bool has =
        std::any_of(image.frameworks->begin(), image.frameworks->end(),
                    [&](const FrameworkBuild& build) { return build.name == name_of(one); });
    if (has) return one;
  }
  return Framework::none;
}

}  // namespace mlenv::job
