#pragma once
// Who the job is within the container (image-spec config.md "User").
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct ContainerUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;  ///< supplementary, sorted
  std::string home = "/root";
  bool listed = true;  ///< in the image's passwd file
};

/// `user` is `""` (root), `NAME`, `UID`, and either with `:GROUP` or `:GID`; `passwd` and `group`
/// are the image's files (empty: it has none). Without a group it is the user's own and the
/// supplementary ones; a UID that is not in `passwd` gets group 0 and home `/`. Throws `no-user`
/// for a name that is not there.
ContainerUser resolve_user(std::string_view user, std::string_view passwd, std::string_view group);

/// Adds supplementary groups by name or number. Throws `no-user`.
void add_groups(ContainerUser& user, const std::vector<std::string>& groups,
                std::string_view group_file);

}  // namespace mlenv
