import PodcastModel
import Testing

struct CommandOriginTests {
    @Test(arguments: [
        ("", "", "by hand"), ("cli", "command line", "by hand"), ("mini", "mini player", "by hand"),
        ("expanded", "expanded player", "by hand"), ("advance", "the queue", "by the queue"),
        ("rule", "a rule", "by a rule"),
        ("robot", "robot", "by robot"),
    ])
    func `origins have display names`(origin: String, name: String, phrase: String) {
        #expect(CommandOrigin(origin).name == name && CommandOrigin(origin).phrase == phrase)
    }
}
