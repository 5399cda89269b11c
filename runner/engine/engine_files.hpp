#pragma once
// What a run writes into its container beforehand (machine.hpp, home.hpp), where this process
// cannot write itself.
#include "runner/engine/keeper_client.hpp"
#include "runner/local/image_root.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

/// By way of the keeper. What lies below the user's home is theirs, all else root's.
class KeeperWriter final : public ImageWriter {
 public:
  /// What the person mounts is theirs: nothing is written at or below those places.
  KeeperWriter(Keeper& keeper, std::vector<Mount> mounts)
      : keeper_(keeper), mounts_(std::move(mounts)) {}
  void write(const std::string& path, std::string_view text, mode_t mode) override;
  void make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) override;
  void belongs_to(const ContainerUser& user) { user_ = user; }

 private:
  bool is_mounted(const std::string& path) const;

  Keeper& keeper_;
  std::vector<Mount> mounts_;
  std::optional<ContainerUser> user_;
};

/// Into a folder of this machine, as files to be mounted: for an image that cannot be written.
class MountWriter final : public ImageWriter {
 public:
  explicit MountWriter(fs::path folder) : folder_(std::move(folder)) {}
  void write(const std::string& path, std::string_view text, mode_t mode) override;
  /// Of a home, which gets a place of its own.
  void make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) override;
  const std::vector<Mount>& mounts() const { return mounts_; }

 private:
  fs::path folder_;
  std::vector<Mount> mounts_;
};

}  // namespace mlenv
