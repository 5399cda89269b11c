#include "runner/job/interfaces.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

using Interface = NodeHello::Interface;
using Interfaces = std::vector<Interface>;

bool is_six(std::string_view address) { return address.find(':') != std::string_view::npos; }

/// fe80::/10
bool is_of_link(std::string_view address) {
  return address.size() > 3 && address.starts_with("fe") &&
         std::string_view("89ab").find(address[2]) != std::string_view::npos && is_six(address);
}

/// What container engines and virtual machines add to a host: other hosts have the same.
bool is_bridge_of_containers(std::string_view name) {
  constexpr std::array<std::string_view, 11> kBegin = {"docker", "br-",    "veth",    "virbr",
                                                       "cni",    "podman", "flannel", "cali",
                                                       "lxc",    "lxdbr",  "kube-"};
  return std::any_of(kBegin.begin(), kBegin.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

/// Those that can be used at all, IPv4 first.
Interfaces usable_interfaces(const NodeHello& node) {
  Interfaces all;
  for (const Interface& one : node.interfaces) {
    if (!one.address.empty() && !is_of_link(one.address)) all.push_back(one);
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const Interface& one) { return !is_six(one.address); });
  return all;
}

template <class Fits>
const Interface* first_that(const Interfaces& all, Fits&& fits) {
  const auto found = std::find_if(all.begin(), all.end(), fits);
  return found == all.end() ? nullptr : &*found;
}

std::string shown_interfaces(const NodeHello& node) {
  std::vector<std::string> all;
  for (const Interface& one : node.interfaces) {
    all.push_back(fmt::format("`{}` ({})", one.name, one.address));
  }
  return all.empty() ? "it has none that is up" : "it has " + join(all, ", ");
}

Error no_interface(const Reach& reach, const NodeHello& node, const std::string& what) {
  return usage_error("no-interface", "{}", what)
      .because(fmt::format("`{}`: {}", reach.name, shown_interfaces(node)))
      .hint("name the one that leads to the other nodes: `--interface NAME`");
}

/// Named, with the address that is asked for where it has that.
const Interface& named(const Interfaces& all, const std::string& name, const Reach& reach,
                       const NodeHello& node) {
  const auto is_it = [&](const Interface& one) { return one.name == name; };
  const Interface* exact = first_that(
      all, [&](const Interface& one) { return is_it(one) && one.address == reach.address; });
  if (exact == nullptr) exact = first_that(all, is_it);
  if (exact != nullptr) return *exact;
  throw no_interface(
      reach, node,
      fmt::format("node `{}` has no interface `{}` with an address", reach.name, name));
}

const Interface& only_one(const Interfaces& all, const Reach& reach, const NodeHello& node) {
  Interfaces outward;
  std::copy_if(all.begin(), all.end(), std::back_inserter(outward), [](const Interface& one) {
    return !one.loopback && !is_bridge_of_containers(one.name);
  });
  if (outward.empty()) {
    throw no_interface(reach, node,
                       fmt::format("node `{}` has no interface that leads to others", reach.name));
  }
  const bool several = std::any_of(outward.begin(), outward.end(), [&](const Interface& one) {
    return one.name != outward.front().name;
  });
  if (several) {
    throw no_interface(
        reach, node,
        fmt::format("by which interface the others reach node `{}` is not known", reach.name));
  }
  return *first_that(all, [&](const Interface& one) {
    return one.name == outward.front().name && one.address == outward.front().address;
  });
}

const Interface& chosen_interface(const Job& job, std::size_t nodes, const Reach& reach,
                                  const NodeHello& node, const Interfaces& all) {
  if (!job.interface.empty()) return named(all, job.interface, reach, node);
  if (!reach.interface.empty()) return named(all, reach.interface, reach, node);
  const Interface* at = first_that(all, [&](const Interface& one) {
    return !reach.address.empty() && one.address == reach.address;
  });
  if (at != nullptr) return *at;
  if (nodes > 1) return only_one(all, reach, node);
  const Interface* loopback = first_that(all, [](const Interface& one) { return one.loopback; });
  return loopback != nullptr ? *loopback : only_one(all, reach, node);
}

}  // namespace

bool is_loopback(std::string_view interface, std::string_view address) {
  return interface == "lo" || address.starts_with("127.") || address == "::1";
}

Place place_of(const Job& job, std::size_t nodes, const Reach& reach, const NodeHello& node) {
  const Interfaces all = usable_interfaces(node);
  const Interface& one = chosen_interface(job, nodes, reach, node, all);
  return {reach.name, one.address, one.name, node.ports, 0, node.host};
}

}  // namespace mlenv::job
