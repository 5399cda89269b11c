#include "runner/mpi/hosts.hpp"

#include <arpa/inet.h>
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <numeric>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv::mpi {
namespace {

constexpr int kAddressBits = 32;

template <class Number>
Number told_number(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) {
    throw failure("bad-stream", "`{}` is no number, in what the job says of its nodes", text);
  }
  return number;
}

Host parse_host(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw failure("bad-stream", "`{}` is no node, in what the job says of its nodes", text);
  }
  constexpr std::size_t kParts = 3;
  const std::vector<std::string_view> parts = split(text.substr(equals + 1), ';');
  if (parts.size() != kParts || parts[0].empty()) {
    throw failure("bad-stream", "`{}` is no node, in what the job says of its nodes", text);
  }
  return {std::string(text.substr(0, equals)), std::string(parts[0]),
          told_number<std::uint16_t>(parts[1]), told_number<std::uint64_t>(parts[2])};
}

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

std::optional<std::uint32_t> ipv4_of(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) != 1) return std::nullopt;
  return ntohl(four.s_addr);
}

}  // namespace

std::string render_hosts(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += fmt::format("{}{}={};{};{}", text.empty() ? "" : ",", host.name, host.address,
                        host.port, host.slots);
  }
  return text;
}

std::vector<Host> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  for (const std::string_view one : split(text, ',')) hosts.push_back(parse_host(one));
  return hosts;
}

const Host* host_called(const std::vector<Host>& hosts, std::string_view word) {
  if (const std::size_t at = word.rfind('@'); at != std::string_view::npos) {
    word.remove_prefix(at + 1);
  }
  for (const Host& host : hosts) {
    if (host.name == word || host.address == word) return &host;
  }
  const auto has_word = [&](const Host& host) { return first_part(host.name) == word; };
  if (std::count_if(hosts.begin(), hosts.end(), has_word) != 1) return nullptr;
  return &*std::find_if(hosts.begin(), hosts.end(), has_word);
}

std::uint64_t slots_of(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Host& host) { return sum + host.slots; });
}

std::string hostfile(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) text += fmt::format("{} slots={}\n", host.name, host.slots);
  return text;
}

std::string hydra_hostfile(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) text += fmt::format("{}:{}\n", host.name, host.slots);
  return text;
}

std::string common_network(const std::vector<std::string>& addresses) {
  constexpr int kFewestBits = 8;
  std::optional<std::uint32_t> first;
  std::uint32_t differs = 0;
  for (const std::string& one : addresses) {
    const std::optional<std::uint32_t> bits = ipv4_of(one);
    if (!bits) return {};
    if (!first) first = bits;
    differs |= *bits ^ *first;
  }
  const int common = std::countl_zero(differs);
  if (!first || common < kFewestBits) return {};
  const std::uint32_t mask = common == kAddressBits ? ~0U : ~(~0U >> common);
  const in_addr network{htonl(*first & mask)};
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &network, text.data(), text.size());
  return fmt::format("{}/{}", text.data(), common);
}

}  // namespace mlenv::mpi
