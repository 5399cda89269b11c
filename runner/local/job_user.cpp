#include "runner/local/job_user.hpp"

#include "base/error.hpp"

namespace mlenv {

ContainerUser job_user(const LocalRun& run, const ImageRoot& image, bool single_id) {
  const std::string passwd = image.read("/etc/passwd").value_or("");
  const std::string group = image.read("/etc/group").value_or("");
  if (!single_id) {
    ContainerUser user = resolve_user(run.options.user.value_or(run.config.user), passwd, group);
    add_groups(user, run.options.groups, group);
    return user;
  }
  const ContainerUser wanted = resolve_user(run.options.user.value_or(""), passwd, group);
  if (wanted.uid == 0 && wanted.gid == 0 && run.options.groups.empty()) {
    return resolve_user("", passwd, group);
  }
  const std::string option = run.options.groups.empty() ? "--user " + *run.options.user
                                                        : "--group-add " + run.options.groups[0];
  throw failure("no-user-map", "`{}` needs more than the one user id that this container has",
                option)
      .because(
          "that one is yours: in the container it is shown as root, and files that it makes "
          "are yours")
      .hint("leave it out, add `--user` with another user than root, or run as root");
}

}  // namespace mlenv
