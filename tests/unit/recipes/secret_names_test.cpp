#include "recipes/secret_names.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(SecretNames, OwnNamesInAnyCase) {
  for (const char* name : {".env",
                           ".ENV",
                           ".env.production",
                           ".env.local",
                           ".envrc",
                           ".npmrc",
                           "kubeconfig",
                           "prod.kubeconfig",
                           "credentials.json",
                           "Credentials.JSON",
                           "terraform.tfstate",
                           "prod.tfvars",
                           "ID_RSA",
                           "key.PEM",
                           "tls.Key",
                           "a/b/.netrc",
                           "_netrc",
                           "deploy_ed25519",
                           "client_secret_12.apps.json",
                           "service-account.json",
                           ".ssh",
                           "x/.aws",
                           ".docker/config.json",
                           "home/.Docker/Config.json",
                           ".cargo/credentials.toml",
                           "ssh_host_rsa_key",
                           "kaggle.json"}) {
    EXPECT_TRUE(names_secret(name)) << name;
  }
}

TEST(SecretNames, CopiesOfThem) {
  for (const char* name : {"id_rsa.old",
                           ".env copy",
                           ".env.bak",
                           "server.pem~",
                           "server.pem.2024-01-31",
                           "key.pem.1",
                           "Copy of credentials.json",
                           "credentials copy.json",
                           "credentials copy 2.json",
                           "credentials (1).json",
                           ".credentials.json.swp",
                           ".id_rsa.swp",
                           "#.netrc#",
                           ".npmrc.orig",
                           ".netrc_backup",
                           "kubeconfig-old",
                           "kubeconfig.20240131",
                           "terraform.tfstate.backup",
                           "key.pem.gz",
                           ".docker/config.json.bak",
                           ".env.txt",
                           ".envrc.save"}) {
    EXPECT_TRUE(names_secret(name)) << name;
  }
}

TEST(SecretNames, OthersTravel) {
  for (const char* name : {".env.example",
                           ".env.sample",
                           ".env.template",
                           ".env.dist",
                           "environment.yml",
                           "my.envx",
                           "tokenizer.json",
                           "keys.py",
                           "secrets.py",
                           "credentials.py",
                           "config.json",
                           ".docker/x",
                           "model.pt.bak",
                           "train.py~",
                           "requirements.txt",
                           "a (1).csv",
                           "1",
                           "-",
                           "~",
                           ".bak",
                           "#",
                           "id.txt",
                           "monkey",
                           "readme.md",
                           "rsa.py",
                           ".gitignore",
                           "checkpoint-1000",
                           "shard-00001"}) {
    EXPECT_FALSE(names_secret(name)) << name;
  }
}

TEST(SecretNames, TheOriginalOfACopy) {
  EXPECT_EQ(name_of_original("A.PEM.BAK~"), "a.pem");
  EXPECT_EQ(name_of_original("Copy of a copy 2.json"), "a.json");
  EXPECT_EQ(name_of_original(".env"), ".env");
  EXPECT_EQ(name_of_original("~"), "~");
  EXPECT_EQ(name_of_original(""), "");
}

}  // namespace
}  // namespace mlenv
