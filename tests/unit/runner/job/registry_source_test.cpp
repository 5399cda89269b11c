#include "runner/job/registry_source.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

const std::string kSourceBlob = "sha256:" + std::string(64, 'a');

class RegistrySourceTest : public ::testing::Test {
 protected:
  RegistrySourceTest() : source_({"r.example:5000/team/x"}, grants(), owner()) {}

  GrantSource grants() {
    return {[this] { ++asked_; },
            [this]() -> std::optional<RegistryGrant> {
              if (!error_.empty()) throw failure("denied", "{}", error_).hint("log in");
              return std::exchange(grant_, std::nullopt);
            }};
  }
  RegistrySource::Owner owner() {
    RegistrySource::Owner owner;
    owner.use = [this](std::size_t node, const UseRegistry& grant) { told_[node] = grant; };
    owner.notice = [this](const std::string& text) { notices_.push_back(text); };
    return owner;
  }
  void give(const std::string& token) {
    grant_ = RegistryGrant{"https://r.example:5000/v2/team/x/blobs/", token};
    source_.advance(now_);
  }
  FetchRange range(std::uint64_t first) const { return {kSourceBlob, first, 4}; }
  void end(std::size_t node, std::uint64_t first, std::string_view how, const std::string& why,
           std::uint64_t serial = 1) {
    source_.ended(node, {kSourceBlob, first, 4, std::string(how), why, serial, true}, now_);
  }

  RegistrySource::Time now_{};
  int asked_ = 0;
  std::optional<RegistryGrant> grant_;
  std::string error_;
  std::map<std::size_t, UseRegistry> told_;
  std::vector<std::string> notices_;
  RegistrySource source_;
};

TEST_F(RegistrySourceTest, NobodyFetchesBeforeThereIsAToken) {
  source_.join(0, "n0", true);
  source_.join(1, "n1", true);
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(source_.usable(0));
  EXPECT_FALSE(source_.ready(0, now_));
  source_.advance(now_);
  EXPECT_TRUE(told_.empty());
  give("Bearer one");
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[1].authorization, "Bearer one");
  EXPECT_TRUE(source_.ready(0, now_));
  source_.join(2, "n2", true);
  EXPECT_EQ(told_[2].serial, 1U);
  EXPECT_EQ(asked_, 1);
}

TEST_F(RegistrySourceTest, ANodeHasTwoRangesUnderWay) {
  source_.join(0, "n0", true);
  give("");
  source_.began(0, range(0));
  EXPECT_TRUE(source_.ready(0, now_));
  source_.began(0, range(4));
  EXPECT_FALSE(source_.ready(0, now_));
  EXPECT_TRUE(source_.brings(0, kSourceBlob, 7));
  EXPECT_FALSE(source_.brings(0, kSourceBlob, 8));
  EXPECT_FALSE(source_.brings(1, kSourceBlob, 7));
  end(0, 0, "", "");
  EXPECT_TRUE(source_.ready(0, now_));
  EXPECT_FALSE(source_.brings(0, kSourceBlob, 3));
}

TEST_F(RegistrySourceTest, WithoutCurlThereIsOneNotice) {
  source_.join(0, "n0", false);
  EXPECT_EQ(asked_, 0);
  EXPECT_FALSE(source_.usable(0));
  EXPECT_FALSE(source_.was_tried());
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("node `n0` has no curl"), std::string::npos);
  EXPECT_EQ(source_.why_not(0), "there is no curl");
}

TEST_F(RegistrySourceTest, AForgottenTokenIsRenewedOnce) {
  source_.join(0, "n0", true);
  source_.join(1, "n1", true);
  give("Bearer one");
  source_.began(0, range(0));
  source_.began(1, range(4));
  source_.piece_came(0);
  end(0, 0, kRangeUnauthorized, "401");
  end(1, 4, kRangeUnauthorized, "401");
  EXPECT_EQ(asked_, 2);
  EXPECT_TRUE(source_.usable(1));
  EXPECT_FALSE(source_.ready(1, now_));
  give("Bearer two");
  EXPECT_EQ(told_[0].authorization, "Bearer two");
  EXPECT_EQ(told_[0].serial, 2U);
  EXPECT_TRUE(source_.ready(1, now_));
  // What was asked for with the one before.
  end(1, 8, kRangeUnauthorized, "401", 1);
  EXPECT_EQ(asked_, 2);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(RegistrySourceTest, ATokenThatWasNeverGoodEndsIt) {
  source_.join(0, "n0", true);
  source_.join(1, "n1", true);
  give("Bearer one");
  source_.began(0, range(0));
  end(0, 0, kRangeUnauthorized, "`r.example` answered 401");
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(source_.is_closed());
  EXPECT_FALSE(source_.usable(1));
  EXPECT_EQ(source_.why_not(1), "`r.example` answered 401 to the token that it had just given");
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(RegistrySourceTest, ATokenThatNobodyUsedInTimeIsRenewed) {
  source_.join(0, "n0", true);
  give("Bearer one");
  now_ += std::chrono::minutes{10};
  source_.began(0, range(0));
  end(0, 0, kRangeUnauthorized, "401");
  EXPECT_FALSE(source_.is_closed());
  EXPECT_EQ(asked_, 2);
}

// Else each would cost a request to the token server, and all others a pause.
TEST_F(RegistrySourceTest, ANodeForWhichNoTokenIsGoodGivesUpAlone) {
  source_.join(0, "n0", true);
  source_.join(1, "n1", true);
  give("Bearer one");
  for (std::uint64_t serial = 1; serial <= 3; ++serial) {
    source_.began(0, range(serial * 4));
    source_.piece_came(0);
    EXPECT_TRUE(source_.usable(1));
    end(1, 0, kRangeUnauthorized, "`r.example` answered 401", serial);
    give("Bearer more");
  }
  EXPECT_EQ(asked_, 3);
  EXPECT_FALSE(source_.is_closed());
  EXPECT_TRUE(source_.usable(0));
  EXPECT_EQ(source_.why_not(1), "`r.example` answered 401 to 3 tokens in a row");
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(RegistrySourceTest, WhereNoTokenIsToBeHad) {
  source_.join(0, "n0", true);
  error_ = "it is closed";
  source_.advance(now_);
  EXPECT_TRUE(source_.is_closed());
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("it is closed; log in; what they lack comes from here"),
            std::string::npos);
}

TEST_F(RegistrySourceTest, WhatBreaksIsTriedAgainAfterAPauseAndNotForEver) {
  source_.join(0, "n0", true);
  source_.join(1, "n1", true);
  give("");
  source_.began(0, range(0));
  end(0, 0, kRangeBroken, "closed after 3 ms");
  EXPECT_FALSE(source_.ready(0, now_));
  EXPECT_TRUE(source_.usable(0));
  EXPECT_TRUE(source_.ready(0, now_ + std::chrono::seconds{1}));
  end(0, 4, kRangeBroken, "closed after 3 ms");
  source_.piece_came(0);  // and tries count anew
  end(0, 8, kRangeBroken, "closed after 3 ms");
  end(0, 8, kRangeBroken, "closed after 3 ms");
  EXPECT_TRUE(source_.usable(0));
  EXPECT_TRUE(notices_.empty());
  end(0, 8, kRangeBroken, "closed after 3 ms");
  EXPECT_FALSE(source_.usable(0));
  EXPECT_TRUE(source_.usable(1));
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("node `n0` fetches from `r.example:5000` no more: closed after 3 ms"),
            std::string::npos);
  end(1, 0, kRangeRefused, "closed after 7 ms");  // the same again
  EXPECT_FALSE(source_.usable(1));
  EXPECT_EQ(notices_.size(), 1U);
}

TEST_F(RegistrySourceTest, RangesAreForAllNodes) {
  source_.join(0, "n0", true);
  give("");
  EXPECT_EQ(source_.range_pieces(80), 20U);
  source_.join(1, "n1", true);
  source_.join(2, "n2", false);
  EXPECT_EQ(source_.range_pieces(80), 10U);
  EXPECT_EQ(source_.range_pieces(1), 4U);
  EXPECT_EQ(source_.range_pieces(100'000), 64U);
  // It gave all of a blob where a part was asked for.
  source_.ended(0, {kSourceBlob, 0, 4, "", "", 1, false}, now_);
  EXPECT_EQ(source_.range_pieces(100'000), 100'000U);
}

TEST_F(RegistrySourceTest, ANodeThatComesAgainIsANewOne) {
  source_.join(0, "n0", true);
  give("");
  source_.began(0, range(0));
  end(0, 0, kRangeRefused, "no");
  source_.leave(0);
  EXPECT_FALSE(source_.usable(0));
  end(0, 0, kRangeRefused, "no");  // of one that is gone
  source_.join(0, "n0", true);
  EXPECT_TRUE(source_.ready(0, now_));
}

}  // namespace

TEST(RegistryGrants, AreReadAsTheyAreWritten) {
  const RegistryGrant grant{"https://r.example/v2/x/blobs/", "Bearer \"1\"", true};
  EXPECT_EQ(parse_registry_grant(render_registry_grant(grant) + "\n"), grant);
  for (const char* wrong : {"", "[]", "{}", R"({"schema":"mlenv.registry-grant/1","blobs":1})"}) {
    try {
      (void)parse_registry_grant(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-json");
    }
  }
}

TEST(RegistryGrants, APersonsErrorComesThrough) {
  const auto answer = [](const char* script) {
    const GrantSource source = grants_by({"/bin/sh", "-c", script});
    source.ask();
    while (true) {
      if (auto grant = source.next()) return grant->authorization;
    }
  };
  EXPECT_EQ(answer(R"(echo '{"schema":"mlenv.registry-grant/1","blobs":"b","authorization":"t",
                      "any_certificate":false}')"),
            "t");
  try {
    (void)answer(
        R"(echo "noise" >&2; echo '{"code":"denied","frames":["a","b"],"hint":"h"}' >&2; exit 1)");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "denied");
    EXPECT_EQ(error.frames().back(), "b");
    EXPECT_EQ(error.hint(), "h");
  }
  EXPECT_THROW((void)answer("exit 3"), Error);
}

}  // namespace mlenv::job
