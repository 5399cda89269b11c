#include "runner/job/beater.hpp"

#include <unistd.h>
#include <array>

#include <gtest/gtest.h>

#include "base/process.hpp"
#include "runner/job/node_link.hpp"

namespace mlenv::job {
namespace {

using std::chrono::milliseconds;

/// The other side's words, one after another: waits for them.
class MessageWords {
 public:
  explicit MessageWords(Fd from) : from_(std::move(from)) {}
  Message next() {
    while (true) {
      if (std::optional<Message> message = reader_.next()) return *std::move(message);
      read_some();
    }
  }
  void read_some() {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(from_.get(), buffer.data(), buffer.size());
    ASSERT_GT(count, 0);
    reader_.take({buffer.data(), static_cast<std::size_t>(count)});
  }
  MessageReader& reader() { return reader_; }

 private:
  Fd from_;
  MessageReader reader_{/*after_marker=*/false};
};

TEST(Beater, SpeaksForALoopThatIsHeldUpAndNotForEver) {
  const milliseconds beat{1000};
  EXPECT_FALSE(Beater::speaks(milliseconds(0), beat, Beater::kMost));
  EXPECT_FALSE(Beater::speaks(milliseconds(999), beat, Beater::kMost));
  EXPECT_TRUE(Beater::speaks(milliseconds(1000), beat, Beater::kMost));
  EXPECT_TRUE(Beater::speaks(milliseconds(299'999), beat, Beater::kMost));
  EXPECT_FALSE(Beater::speaks(milliseconds(300'000), beat, Beater::kMost));
}

TEST(Beater, ANodeHearsBeatsWhileNobodyTicks) {
  Pipe to = make_pipe();
  Pipe from = make_pipe();
  Beater beater{milliseconds(1)};
  NodeLink link{{std::move(to.write_end), std::move(from.read_end)}, {}, {}, &beater};
  MessageWords node{std::move(to.read_end)};
  write_all(from.write_end.get(), as_bytes(stream_marker() + render_message(Hello{})));
  link.take();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::holds_alternative<Beat>(node.next()));
  // What the loop says later comes behind, whole.
  link.ask_facts();
  link.send();
  while (true) {
    const Message message = node.next();
    if (std::holds_alternative<AskFacts>(message)) break;
    ASSERT_TRUE(std::holds_alternative<Beat>(message));
  }
}

TEST(Beater, NothingIsSaidToWhoeverHasNotSaidAWord) {
  Pipe to = make_pipe();
  Pipe from = make_pipe();
  const Fd heard{std::move(to.read_end)};
  {
    Beater beater{milliseconds(1)};
    Beater witness{milliseconds(1)};
    Pipe seen = make_pipe();
    Pipe back = make_pipe();
    Channel other{{std::move(seen.write_end), std::move(back.read_end)}, false};
    const NodeLink link{{std::move(to.write_end), std::move(from.read_end)}, {}, {}, &beater};
    witness.add(other);
    MessageWords words{std::move(seen.read_end)};
    for (int i = 0; i < 5; ++i) (void)words.next();
    witness.remove(other);
  }
  std::array<char, 1> byte{};
  EXPECT_EQ(::read(heard.get(), byte.data(), 1), 0);  // its end alone
}

TEST(Channel, ABeatIsNeverInTheMidstOfAMessage) {
  Pipe to = make_pipe();
  Pipe from = make_pipe();
  Channel channel{{std::move(to.write_end), std::move(from.read_end)}, false};
  MessageWords other{std::move(to.read_end)};
  const std::string much(std::size_t{300} << 10, 'x');  // more than a pipe takes
  channel.say(BlobBytes{much});
  ASSERT_TRUE(channel.send());
  ASSERT_GT(channel.queued(), 0U);
  channel.beat(milliseconds(0));
  while (channel.queued() > 0) {
    other.read_some();
    channel.beat(milliseconds(0));
  }
  channel.beat(milliseconds(0));
  const Message first = other.next();
  ASSERT_TRUE(std::holds_alternative<BlobBytes>(first));
  EXPECT_EQ(std::get<BlobBytes>(first).bytes, much);
  EXPECT_TRUE(std::holds_alternative<Beat>(other.next()));
  channel.close();
  channel.beat(milliseconds(0));
  EXPECT_EQ(channel.queued(), 0U);
}

}  // namespace
}  // namespace mlenv::job
