#pragma once
// Which ids a container of an ordinary user has when the job is to be another user than root in it:
// the caller is shown as that one, so that files made in mounts are the caller's, and all other ids
// are the caller's subordinate ones (subuid(5)).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/local/run.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

struct IdRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const IdRange&, const IdRange&) = default;
};

/// A line of a map (user_namespaces(7)).
struct IdMapLine {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
  friend bool operator==(const IdMapLine&, const IdMapLine&) = default;
};

/// Those that a file as /etc/subuid gives the user of that name or number. Broken lines give none.
std::vector<IdRange> subordinate_ranges(std::string_view file, std::string_view name,
                                        std::uint32_t number);

/// Whether the machine asks a directory service for such ids, by its /etc/nsswitch.conf: then
/// getsubids(1) tells them, and the files need not.
bool asks_directory(std::string_view nsswitch);
/// What getsubids(1) prints, `0: jo 100000 65536`.
std::vector<IdRange> listed_ranges(std::string_view printed);

/// `own` is shown as `inside`; every other id from 0 on is the next one of `ranges`, as far as they
/// go.
std::vector<IdMapLine> map_keeping(std::uint32_t inside, std::uint32_t own,
                                   const std::vector<IdRange>& ranges);

/// Whom the caller is shown as; nullopt: root, for which one id is enough. Reads the image's files
/// through its trees, as there is no container yet. Throws `no-user`.
std::optional<ContainerUser> shown_as(const LocalRun& run);

/// Into a user namespace (and one of mounts) of those ids. This process is root there, but what it
/// makes on a disk is the caller's, as before; so its children are, until they start a program,
/// which is root. The caller's mlenv can go on to send it signals. Throws `no-user-map` where there
/// are no such ids, with what to do.
void enter_mapped_namespace(const ContainerUser& user);

/// Within it: throws `no-user-map` where one of the user's groups has no place in the map.
void require_mapped(const ContainerUser& user);

}  // namespace mlenv
