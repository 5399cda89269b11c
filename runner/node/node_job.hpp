#pragma once
// What an agent has in hand for its job: images and code on their way into the store, ranks, and
// answers to questions. It waits for nothing: its owner polls.
#include <poll.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "images/store.hpp"
#include "runner/job/channel.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/node/data_intake.hpp"
#include "runner/node/image_intake.hpp"
#include "runner/node/intake.hpp"
#include "runner/node/link_tester.hpp"
#include "runner/node/rank_run.hpp"
#include "runner/node/storage_tester.hpp"
#include "runner/node/work.hpp"

namespace mlenv::job {

class NodeJob {
 public:
  /// Answers go to `channel`.
  NodeJob(Channel& channel, Store& store);

  /// What the controller asks for; questions of the link itself are not for here. Throws
  /// `bad-stream`.
  void take(const Message& message);
  /// Descriptors to wait for, appended; then the same ones, as poll(2) left them.
  void add_to(std::vector<pollfd>& fds) const;
  void hear(const pollfd* fds);
  /// Says what ranks have to say, as far as there is room.
  void tell();
  /// Now and then.
  void tick();
  /// There is more to do at once: nobody should wait before the next tick.
  bool busy() const { return layers_.busy(); }

  /// Nothing new is begun, ranks are stopped. `why`: it is the node that has them end; empty: the
  /// controller.
  void end(std::chrono::milliseconds grace, const std::string& why);
  void kill_ranks();
  /// Nothing of it runs.
  bool gone() const;
  /// And all is said of it.
  bool told() const { return ranks_.empty(); }

 private:
  void on_offer(const OfferImage& offer);
  void on_offer(const OfferCode& offer);
  void on_start(const StartRank& start);
  void on_link_test(const LinkTest& test);
  void on_storage_test(const TestStorage& test);
  void begin_when_complete(const std::string& during);
  /// What `work` throws is told as a failure of that request.
  template <class DoIt>
  void attempt(const std::string& during, DoIt&& work);
  void take_bytes(std::string_view bytes);
  void on_begin(const BeginBlob& begin);
  void give_up(const std::string& during);
  DataIntake::Owner owner_of_data();
  void take_answer(Work& work);
  void ready(const std::string& during, const std::string& digest);
  DetachedRun run_of(const StartRank& start);
  RankRun* rank(std::uint64_t number);
  void sweep();
  fs::path job_folder();
  fs::path code_folder();
  fs::path hosts_file(const std::string& hosts);

  Channel& channel_;
  Store& store_;
  Intake intake_;                   ///< of the code
  ImageIntake layers_;              ///< of the image that was offered last
  DataIntake data_;                 ///< of the data that was offered last
  std::string bytes_of_;            ///< the request that those that come next are of
  Fd logs_;                         ///< inotify(7): a log grows
  std::optional<Image> image_;      ///< that was offered last
  std::vector<std::string> names_;  ///< that it is to have
  std::map<std::string, std::vector<fs::path>> trees_;  ///< of images that are ready, by digest
  std::string archive_;                                 ///< of code, that was offered last
  std::string code_;                                    ///< the one that is ready
  SettledSources sources_;
  std::string facts_;                      ///< of this node, once they were asked
  std::optional<TemporaryFolder> folder_;  ///< of the job
  std::vector<std::unique_ptr<Work>> works_;
  std::optional<LinkTester> links_;       ///< during a preflight
  std::optional<StorageTester> storage_;  ///< while storage is proven
  std::vector<std::unique_ptr<RankRun>> ranks_;
  bool ending_ = false;
  bool unfinished_ = false;  ///< a process of works_ did not come to its end
};

}  // namespace mlenv::job
