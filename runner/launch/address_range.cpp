#include "runner/launch/address_range.hpp"

#include <charconv>
#include <optional>
#include <vector>

#include "base/text.hpp"

namespace mlenv::job {
namespace {

struct Route {
  std::uint32_t target = 0;  ///< in the order in which addresses are written
  std::uint32_t mask = 0;
};

/// A number as the kernel prints it there: the bytes of the address as one of this machine's.
std::optional<std::uint32_t> hex_address(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return __builtin_bswap32(number);
}

/// Wider routes lead everywhere: the default one, and its two halves, as some tunnels set it.
constexpr std::uint32_t kNarrow = 0xFF000000U;

/// Lines that are none, such as the heading, give nothing.
std::vector<Route> routes_in(std::string_view table) {
  std::vector<Route> routes;
  for (const std::string_view line : split(table, '\n')) {
    const std::vector<std::string_view> words = split(line, '\t');
    if (words.size() < 8) continue;
    const std::optional<std::uint32_t> target = hex_address(words[1]);
    const std::optional<std::uint32_t> mask = hex_address(trim(words[7]));
    if (target && mask && *mask >= kNarrow) routes.push_back({*target, *mask});
  }
  return routes;
}

bool touches(const Route& route, AddressRange range) {
  constexpr std::uint32_t kRangeMask = 0xFFFF0000U;
  const std::uint32_t base = static_cast<std::uint32_t>(range.first) << 24U |
                             static_cast<std::uint32_t>(range.second) << 16U;
  const std::uint32_t common = kRangeMask & route.mask;
  return (base & common) == (route.target & common);
}

}  // namespace

Address AddressRange::of(std::size_t node) const {
  const std::size_t host = node + 1;
  return {first, second, static_cast<std::uint8_t>(host / 256),
          static_cast<std::uint8_t>(host % 256)};
}

AddressRange free_range(std::string_view routes) {
  const std::vector<Route> taken = routes_in(routes);
  // From the middle of what people seldom take: they begin at 10.0, and docker and Kubernetes near
  // 10.42, 10.96 and 10.244.
  constexpr unsigned kFirst = 209;
  for (unsigned step = 0; step < 256; ++step) {
    const AddressRange range{10, static_cast<std::uint8_t>((kFirst + step) % 256)};
    bool free = true;
    for (const Route& route : taken) free = free && !touches(route, range);
    if (free) return range;
  }
  return {198, 18};
}

}  // namespace mlenv::job
