#include "runner/record/secrets.hpp"

#include <gtest/gtest.h>
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

TEST(SecretNames, AreToldByTheirWords) {
  for (const char* name : {"HF_TOKEN",
                           "token",
                           "--token",
                           "WANDB_API_KEY",
                           "apiKey",
                           "api-key",
                           "AWS_SECRET_ACCESS_KEY",
                           "awsSecretKey",
                           "DB_PASSWORD",
                           "dbPasswd",
                           "GOOGLE_APPLICATION_CREDENTIALS",
                           "HTTP_AUTH",
                           "APIKEY",
                           "COOKIE",
                           "PGPASSWORD",
                           "MYSQL_PWD",
                           "DBPassword",
                           "HFTOKEN",
                           "GITHUB_PAT",
                           "AUTHORIZATION",
                           "--key",
                           "--pass",
                           "SSH_KEY"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name :
       {"TOKENIZERS_PARALLELISM", "PATH", "AUTHOR", "MONKEY", "CUDA_VISIBLE_DEVICES",
        "--max-tokens", "", "KEYS", "PASSES", "PATTERN"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST(Secrets, ArgumentsLoseThem) {
  EXPECT_EQ(without_secrets({"train.py", "--hf-token", "hf_abc", "--lr=0.1", "--api-key=xyz",
                             "PASSWORD=pw", "--password", "--epochs", "3"}),
            (Strings{"train.py", "--hf-token", "***", "--lr=0.1", "--api-key=***", "PASSWORD=***",
                     "--password", "--epochs", "3"}));
  EXPECT_EQ(without_secrets({"get_token.py", "token", "x"}),
            (Strings{"get_token.py", "token", "x"}));
  EXPECT_EQ(
      without_secrets({"--token", "-abc", "curl", "-H", "Authorization: Basic abc", "bearer x"}),
      (Strings{"--token", "***", "curl", "-H", "Authorization: ***", "bearer ***"}));
  EXPECT_EQ(without_secrets({"https://me:pa,s'\"<`>s@h/x"}), (Strings{"https://***@h/x"}));
  EXPECT_EQ(without_secrets({"sh", "-c", "curl https://u:p@h/"}),
            (Strings{"sh", "-c", "curl https://***@h/"}));
}

}  // namespace
}  // namespace mlenv
