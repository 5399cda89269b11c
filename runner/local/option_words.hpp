#pragma once
// Words of `mlenv run`'s options, as Docker spells them, understood. Each throws `usage` (mounts:
// `bad-mount`) with the option in the message when a word is malformed; nothing of the host is
// looked at, but by `parse_mount` for its source.
#include <string_view>
#include <variant>

#include "runner/local/options.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

/// `512m`, `1.5g`, `64KiB`, `1048576`: units are powers of 1024. At least one byte.
std::uint64_t parse_size(std::string_view option, std::string_view text);
/// Of `--memory`: as `parse_size`, and enough to start a container with.
std::uint64_t parse_memory(std::string_view text);
/// Of `--memory-swap`, into `limits`, whose memory is known: memory and swap together, so no less
/// than that; `-1`: as much swap as there is; `0`: as if it were not said.
void parse_memory_swap(std::string_view text, JobLimits& limits);
/// `0.5`, `2`.
double parse_cpus(std::string_view text);
/// `0-3,8`: returned in the kernel's form, sorted and joined (`0-3,8`).
std::string parse_cpuset(std::string_view text);
/// nullopt for `-1`: not limited.
std::optional<std::uint64_t> parse_pids(std::string_view text);
/// `NAME=SOFT[:HARD]`; `unlimited` or `-1` for a number.
Ulimit parse_ulimit(std::string_view text);
/// `DIR[:OPTION,…]`: `size=…`, `mode=…`, `ro`, `exec` and their kin.
MemoryFolder parse_tmpfs(std::string_view text);
/// The words that it is read from.
std::string tmpfs_word(const MemoryFolder& folder);
/// `type=bind,source=…,target=…[,readonly]` or `type=tmpfs,target=…[,tmpfs-size=…][,tmpfs-mode=…]`.
std::variant<Mount, MemoryFolder> parse_mount(std::string_view text);
/// `[IP:]HOST:CONTAINER[/tcp|/udp]`, also with ranges of equal length. Without an address it is
/// 127.0.0.1. IPv4.
std::vector<PublishedPort> parse_ports(std::string_view text);
/// A name for a host (RFC 1123).
std::string parse_hostname(std::string_view text);
JobLabel parse_label(std::string_view text);

}  // namespace mlenv
