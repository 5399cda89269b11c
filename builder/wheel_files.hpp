#pragma once
// The wheels of a lock as files of this machine. Their layers, their bytecode and the check of all
// against each other ask what is in them: each is listed once.
#include <memory>
#include <mutex>
#include <vector>

#include "builder/inputs.hpp"
#include "builder/wheel.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// May be used by several threads.
class WheelFiles {
 public:
  WheelFiles(const Lock& lock, Inputs& inputs);

  /// The lock's wheel of this number, with its listing; gets it where it is not there yet. Throws
  /// what `Inputs::wheel` and `installed_files` do.
  WheelFile get(std::size_t wheel);
  std::vector<WheelFile> get(const std::vector<std::size_t>& wheels);

  /// Whether `store` knows that these wheels go together.
  bool agree_as_known(const Store& store) const;
  /// Throws what `check_wheels_agree` does. `store` remembers wheels that do: they are not read
  /// again.
  void check_agreement(Store& store);

 private:
  struct Listing {
    std::mutex mutex;
    std::shared_ptr<const std::vector<InstalledFile>> files;
  };
  Digest agreement_key() const;

  const Lock& lock_;
  Inputs& inputs_;
  std::vector<Listing> listings_;  ///< by wheel
};

}  // namespace mlenv
