#pragma once
// Files of data sets on their way to a node: read where they lie, a part at a time, as the link has
// room. Nothing of them is stored here.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/job/channel.hpp"
#include "runner/job/data_lists.hpp"

namespace mlenv::job {

/// The request that they belong to, in messages.
inline constexpr std::string_view kData = "data";

class DataSender {
 public:
  /// What could not be read ends it: `failed` is told, the node, too.
  using FailedEvent = std::function<void(const std::string& during, const Error&)>;

  /// What a node may ask for.
  void offer(DataLists& lists, const std::vector<DataSet>& sets);
  /// Of what was not offered nothing is sent.
  void want(const WantData& want);
  bool busy() const { return set_ != nullptr; }
  /// Queues parts until there is no more room, each with its BeginBlob.
  void fill(Channel& channel, const FailedEvent& failed);
  void forget();

  // Of one that is busy:
  const std::string& name() const { return set_->name; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t all() const { return set_->bytes; }

 private:
  void read_list();
  void send_part(Channel& channel);
  void open_file(const DataFile& file);
  void next_file();

  DataLists* lists_ = nullptr;
  std::vector<DataSet> sets_;
  const DataSet* set_ = nullptr;          ///< that files of are wanted
  std::shared_ptr<const DataList> list_;  ///< of that one, once it is read
  std::vector<DataRange> ranges_;         ///< what is left, the first one begins with the next file
  std::uint64_t offset_ = 0;              ///< in that file
  Fd file_;
  std::uint64_t sent_ = 0;  ///< of the set, what the node had among it
};

}  // namespace mlenv::job
