package policy

// GitSetting is one setting of a configuration file of git.
type GitSetting struct {
	Key   string // section and name in lower case, what is between them as it is written
	Value string
}

// GitSettings lists the settings of a configuration file in their order.
func GitSettings(text []byte) []GitSetting {
	var list []GitSetting
	eachGitSetting(text, func(key, value string) { list = append(list, GitSetting{key, value}) })
	return list
}

// GitSettingRuns reports whether a setting makes git run a program that is not known to
// be harmless.
func GitSettingRuns(s GitSetting) bool { return riskyGitKey(s.Key, s.Value) }
