#pragma once
// Which system calls a container may make: an allowlist like the one Docker runs containers under.
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace mlenv {

/// `linux.seccomp` of an OCI runtime configuration (runtime-spec config-linux.md "Seccomp") for an
/// architecture as OCI names it (`amd64`, `arm64`) and its 32-bit programs, as base/confinement.hpp
/// has the calls. Beyond Docker's list, NUMA policy calls are allowed (training programs bind
/// memory to nodes).
///
/// `pretend_owners`: chown and its kin, and setgroups, do nothing and succeed. For a container in
/// which a single id exists: every file is the caller's whatever is asked, and dpkg could not
/// unpack a package with other owners; groups are not to be had, and sshd would not go on without.
///
/// For engines. OCI runtimes would make the same filter from it at each start, which takes them
/// several milliseconds: their containers' first program installs container_filter.
nlohmann::json seccomp_profile(std::string_view architecture, bool pretend_owners);

/// The same as the kernel takes it (bytes of sock_filter): the command's, installed by the first
/// program of a container (runner/engine/keeper/enter.hpp).
std::string container_filter(std::string_view architecture, bool pretend_owners);

}  // namespace mlenv
