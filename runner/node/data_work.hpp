#pragma once
// Data sets in a node's store, and what of that takes long.
//
//   data/               for the store's owner alone: data may be nobody else's to read
//   data/HEX            a file or folder whose digest that is: whole, and on the disk
//   data/HEX.part/      what came of one so far: `content`, and a file that is on its way
//   data/HEX.lock       held by the agent that looks for it and takes it in
//
// Only the whole is believed, and that by its digest: what a power cut spoilt is found, and comes
// again. Parts that nobody went on with for a week go.
#include <cstdint>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "recipes/data_list.hpp"
#include "runner/job/messages.hpp"

namespace mlenv::job {

/// Names in a store, whose folder that is.
class DataNames {
 public:
  DataNames(const fs::path& store, const Digest& digest)
      : folder_(store / "data"), hex_(digest.hex()) {}
  const fs::path& folder() const { return folder_; }
  fs::path whole() const { return folder_ / hex_; }
  fs::path part() const { return folder_ / (hex_ + ".part"); }
  fs::path content() const { return part() / "content"; }
  /// Of one of its files, of which not all is there.
  fs::path piece(const Digest& file) const { return part() / (file.hex() + ".piece"); }
  fs::path lock() const { return folder_ / (hex_ + ".lock"); }

 private:
  fs::path folder_;
  std::string hex_;
};

void make_data_folder(const fs::path& store);

/// In a process of its own (work.hpp), with the lock held by the agent. Words after `data STORE`:
///   look NAME DIGEST FROM yes|no   has the node it? `yes`: what it lacks can be sent to it
///   plan DIGEST LIST               which files of the list's blob are lacking; takes no more
///                                  room than there is: `no-space`
///   finish DIGEST LIST             proves all that came, and gives it its name
/// Answers DataAt, or WantData with what is lacking (of `look` without files), as a message.
/// Throws `no-data` and `data-differs`, where it cannot be sent; `bad-data`; `digest-mismatch`.
std::string data_work(const std::vector<std::string>& words);

}  // namespace mlenv::job
