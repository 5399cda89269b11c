#include "runner/node/hello.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <random>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/job/store_id.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/run_names.hpp"
#include "runner/local/runtime.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/node/version.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

std::string runtime_path() {
  try {
    return find_runtime("").program.string();
  } catch (const Error&) {
    return "";
  }
}

std::uint64_t free_bytes_of(const fs::path& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return 0;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

/// Empty: neither IPv4 nor IPv6, or an address that means nothing on another machine.
std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof six);
    if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) return {};
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::vector<NodeHello::Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const Owned<::freeifaddrs>::of<ifaddrs> list{first};
  std::vector<NodeHello::Interface> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    std::string address = address_text(one->ifa_addr);
    if (address.empty()) continue;
    // `eth0:1` is an address of eth0.
    const std::string_view label = one->ifa_name;
    found.push_back({std::string(label.substr(0, label.find(':'))), std::move(address),
                     (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

/// A socket that listens nowhere yet but has the port; none where it is taken.
Fd take_port(std::uint16_t port) {
  Fd six{::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (six) {  // both protocols at once, unless this machine has it otherwise
    const int off = 0;
    (void)::setsockopt(six.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    const auto* plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast)
    if (::bind(six.get(), plain, sizeof address) == 0) return six;
    if (errno == EADDRINUSE) return {};
  }
  Fd four{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT(*-reinterpret-cast)
  if (four && ::bind(four.get(), plain, sizeof address) == 0) return four;
  return {};
}

/// The lowest port that an outgoing connection may get (ip(7)).
std::uint16_t first_outgoing() {
  constexpr std::uint16_t kUsual = 32768;
  const std::string range =
      read_file_if_exists("/proc/sys/net/ipv4/ip_local_port_range").value_or("");
  std::uint16_t first = 0;
  const auto read = std::from_chars(range.data(), range.data() + range.size(), first);
  return read.ec == std::errc{} && first > 0 ? first : kUsual;
}

}  // namespace

std::vector<std::uint16_t> free_ports(std::size_t count) {
  constexpr std::uint16_t kFirst = 10000;
  constexpr std::size_t kTriesEach = 200;
  constexpr std::size_t kMost = 1000;
  const std::uint16_t end = first_outgoing();
  std::random_device device;
  // Where outgoing connections may have nearly all, any will do.
  constexpr std::uint16_t kFewest = 1000;
  const bool room = end >= kFirst + kFewest;
  std::uniform_int_distribution<int> any{kFirst, room ? end - 1 : UINT16_MAX};
  std::vector<std::uint16_t> ports;
  std::vector<Fd> held;  // until all are found, so that none is found twice
  count = std::min(count, kMost);
  for (std::size_t tries = 0; ports.size() < count && tries < count * kTriesEach; ++tries) {
    const auto port = static_cast<std::uint16_t>(any(device));
    Fd fd = take_port(port);
    if (!fd) continue;
    held.push_back(std::move(fd));
    ports.push_back(port);
  }
  return ports;
}

NodeHello hello_of(const fs::path& store, std::size_t ports) {
  NodeHello hello;
  hello.host = host_name();
  hello.version = std::string(own_version());
  hello.boot_id = trim(read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or(""));
  hello.runtime = runtime_path();
  hello.clock = utc_text(std::chrono::system_clock::now());
  hello.store = store.string();
  hello.store_id = store_id(store);
  hello.free_bytes = free_bytes_of(store);
  hello.interfaces = interfaces();
  const Variables variables = caller_variables();
  hello.given_gpus = given_gpus({variables.begin(), variables.end()});
  hello.ports = free_ports(ports);
  hello.curl = find_program("curl").value_or("").string();
  return hello;
}

}  // namespace mlenv::job
