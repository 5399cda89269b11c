#include "runner/job/places.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mlenv::job {
namespace {

using Interface = NodeHello::Interface;

std::string listed(const std::vector<Interface>& all) {
  std::vector<std::string> names;
  for (const Interface& one : all) names.push_back(fmt::format("{} ({})", one.name, one.address));
  return names.empty() ? "none" : join(names, ", ");
}

Error no_interface(const NodeState& node, std::string why) {
  return usage_error("no-interface", "node `{}` has no interface for the job", node.offer.name)
      .because(std::move(why))
      .because("it has " + listed(node.hello->interfaces));
}

/// IPv4 first: all frameworks take it.
const Interface* first_of(const std::vector<const Interface*>& some) {
  const auto plain = std::find_if(some.begin(), some.end(), [](const Interface* one) {
    return one->address.find(':') == std::string::npos;
  });
  if (plain != some.end()) return *plain;
  return some.empty() ? nullptr : some.front();
}

template <class Test>
const Interface* find(const NodeState& node, Test&& test) {
  std::vector<const Interface*> found;
  for (const Interface& one : node.hello->interfaces) {
    if (test(one)) found.push_back(&one);
  }
  return first_of(found);
}

/// nullptr: there is none, or nobody can say which.
const Interface* only_one(const NodeState& node) {
  const Interface* one = find(node, [](const Interface& it) { return !it.loopback; });
  if (one == nullptr) return nullptr;
  const bool others = std::any_of(
      node.hello->interfaces.begin(), node.hello->interfaces.end(),
      [&](const Interface& it) { return !it.loopback && it.name != one->name; });
  return others ? nullptr : one;
}

const Interface* chosen(const NodeState& node, const Job& job, bool alone) {
  if (!job.interface.empty()) {
    const Interface* one =
        find(node, [&](const Interface& it) { return it.name == job.interface; });
    if (one == nullptr) throw no_interface(node, fmt::format("`{}` is not up", job.interface));
    return one;
  }
  const Interface* reached =
      find(node, [&](const Interface& it) { return it.address == node.offer.address; });
  if (reached != nullptr && (alone || !reached->loopback)) return reached;
  if (const Interface* one = only_one(node)) return one;
  if (alone) return find(node, [](const Interface& it) { return it.loopback; });
  return nullptr;
}

}  // namespace

Place place_of(const NodeState& node, const Job& job, bool alone) {
  const Interface* const one = chosen(node, job, alone);
  if (one == nullptr) {
    throw no_interface(node, "which one the nodes reach each other by cannot be told")
        .hint("name it: `--interface NAME`");
  }
  return {node.offer.name, one->address, one->name, node.hello->ports};
}

}  // namespace mlenv::job
