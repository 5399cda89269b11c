#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "base/handle.hpp"
#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

using TextList = std::vector<std::string>;
using InterfaceAddresses = std::map<std::string, TextList>;  ///< of each interface

template <class Address>
std::string cidr_text(int family, const Address& address, const Address& mask) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(family, &address, text.data(), text.size()) == nullptr) return {};
  std::array<unsigned char, sizeof(Address)> bytes{};
  std::memcpy(bytes.data(), &mask, sizeof(Address));
  int length = 0;
  for (const unsigned char byte : bytes) length += std::popcount(byte);
  return std::string(text.data()) + "/" + std::to_string(length);
}

template <class Socket>
Socket socket_address(const sockaddr* address) {
  Socket copy{};
  if (address != nullptr) std::memcpy(&copy, address, sizeof copy);
  return copy;
}

/// getifaddrs(3); nothing where it fails.
std::optional<InterfaceAddresses> addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return std::nullopt;
  const Owned<::freeifaddrs>::of<ifaddrs> list{first};
  InterfaceAddresses found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const std::string_view label = one->ifa_name;  // `eth0:1` is an address of eth0
    TextList& names = found[std::string(label.substr(0, label.find(':')))];
    if (one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      names.push_back(cidr_text(AF_INET, socket_address<sockaddr_in>(one->ifa_addr).sin_addr,
                                socket_address<sockaddr_in>(one->ifa_netmask).sin_addr));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      names.push_back(cidr_text(AF_INET6, socket_address<sockaddr_in6>(one->ifa_addr).sin6_addr,
                                socket_address<sockaddr_in6>(one->ifa_netmask).sin6_addr));
    }
  }
  for (auto& [name, names] : found) std::sort(names.begin(), names.end());
  return found;
}

/// ARPHRD_LOOPBACK of the kernel's if_arp.h; what has no device behind it is virtual.
Text kind_of(const FactSources& from, const fs::path& folder) {
  return derived<std::string>(file_text(from, folder / "type"), [&](const std::string& type) {
    return std::optional<std::string>(type == "772"                      ? "loopback"
                                      : present(from, folder / "device") ? "physical"
                                                                         : "virtual");
  });
}

/// -1, or no answer at all, where the driver or a link that is down does not know.
Number link_speed(const FactSources& from, const fs::path& folder) {
  const Text text = file_text(from, folder / "speed");
  if (!text) return unknown<std::uint64_t>(text.source);
  const auto speed = number_of(*text);
  if (speed && *speed > 0) return known(*speed, text.source);
  return unknown<std::uint64_t>(text.source + ": its driver does not say");
}

NetworkInterface interface_facts(const FactSources& from, const std::string& name) {
  const fs::path folder = fs::path("/sys/class/net") / name;
  NetworkInterface one;
  one.name = name;
  one.kind = kind_of(from, folder);
  one.state =
      derived<std::string>(file_text(from, folder / "operstate"),
                           [](const std::string& state) { return std::optional(to_lower(state)); });
  // The kernel's own word for an interface that has no such state, as a loopback.
  if (one.state && *one.state == "unknown") {
    one.state = unknown<std::string>(one.state.source + ": its driver does not say");
  }
  one.speed_mbps = link_speed(from, folder);
  one.mtu_bytes = file_number(from, folder / "mtu");
  return one;
}

}  // namespace

Fact<std::vector<NetworkInterface>> probe_interfaces(const FactSources& from) {
  const std::optional<InterfaceAddresses> given = from.live() ? addresses() : std::nullopt;
  Texts names = names_in(from, "/sys/class/net");
  if (!names && given) {
    names = known(TextList{}, "getifaddrs");
    for (const auto& [name, unused] : *given) names.value->push_back(name);
  }
  return derived<std::vector<NetworkInterface>>(names, [&](const TextList& listed) {
    std::vector<NetworkInterface> interfaces;
    for (const std::string& name : listed) {
      if (name == "bonding_masters") continue;  // a file beside them
      NetworkInterface one = interface_facts(from, name);
      if (!given) {
        one.addresses = unknown<TextList>(from.live() ? "getifaddrs fails" : "not recorded");
      } else {
        const auto found = given->find(name);
        one.addresses = known(found == given->end() ? TextList{} : found->second, "getifaddrs");
      }
      interfaces.push_back(std::move(one));
    }
    return std::optional(interfaces);
  });
}

namespace {

bool is_loopback_address(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

/// The addresses of /etc/hosts (hosts(5)) for a name.
TextList listed_addresses(const std::string& hosts, std::string_view name) {
  TextList found;
  for (const std::string_view line : split(hosts, '\n')) {
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.size() > 1 && std::find(words.begin() + 1, words.end(), name) != words.end()) {
      found.emplace_back(words.front());
    }
  }
  return found;
}

/// First words of getent's lines, each once.
TextList distinct_first_words(const std::string& text) {
  TextList found;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (std::find(found.begin(), found.end(), words[0]) == found.end()) {
      found.emplace_back(words[0]);
    }
  }
  return found;
}

}  // namespace

void probe_host_name(const FactSources& from, NetworkFacts& into) {
  into.host_name = file_text(from, "/proc/sys/kernel/hostname");
  if (!into.host_name) {
    into.host_addresses = unknown<TextList>(into.host_name.source);
    into.host_is_loopback = unknown<bool>(into.host_name.source);
    return;
  }
  into.host_addresses = derived<TextList>(
      from.ask({"getent", "ahosts", *into.host_name}),
      [](const std::string& answer) { return std::optional(distinct_first_words(answer)); });
  if (!into.host_addresses) {
    const Text hosts = file_text(from, "/etc/hosts");
    TextList listed = listed_addresses(hosts.value.value_or(""), *into.host_name);
    if (!listed.empty()) into.host_addresses = known(std::move(listed), hosts.source);
  }
  into.host_is_loopback =
      derived<bool>(into.host_addresses, [](const TextList& found) -> std::optional<bool> {
        if (found.empty()) return std::nullopt;
        return is_loopback_address(found.front());
      });
}

}  // namespace mlenv
