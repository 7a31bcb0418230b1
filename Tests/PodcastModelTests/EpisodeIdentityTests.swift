import PodcastModel
import Testing

private func item(guid: String = "", audio: String = "", title: String = "", date: Int64? = nil) -> FeedEpisode {
    var item = FeedEpisode()
    item.guid = guid
    item.enclosureURL = audio
    item.title = title
    item.published = date.map(Timestamp.init(milliseconds:))
    return item
}

private func identities(_ items: [FeedEpisode]) -> [String] {
    FeedDocument(channel: FeedChannel(), items: items).identified().items.map(\.identity.alias)
}

@Test func `an episode is identified by its GUID, else by its audio, else by its title`() {
    #expect(
        identities([
            item(guid: "g", audio: "http://h/1", title: "t"), item(audio: "https://H/2", title: "t"),
            item(title: "t", date: 1_000),
        ]) == ["guid:g", "url://h/2", "title:1:-:t"])
}

@Test func `a repeated item is listed once`() {
    let document = FeedDocument(
        channel: FeedChannel(),
        items: [item(guid: "g", audio: "http://h/1", title: "new"), item(guid: "g", audio: "http://h/1", title: "old")])
    let (items, warnings) = document.identified()
    #expect(items.map(\.item.title) == ["new"])
    #expect(warnings.map(\.code) == ["repeatedItem"])
}

@Test func `a GUID that several episodes share identifies none of them`() {
    let document = FeedDocument(
        channel: FeedChannel(), items: [item(guid: "g", audio: "http://h/1"), item(guid: "g", audio: "http://h/2")])
    let (items, warnings) = document.identified()
    #expect(items.map(\.identity.alias) == ["url://h/1", "url://h/2"])
    #expect(items.allSatisfy { !$0.aliases.contains(.guid("g")) })
    #expect(warnings.map(\.code) == ["sharedGUID"])
}

@Test func `an audio URL that several episodes share isn’t an alias`() {
    let document = FeedDocument(
        channel: FeedChannel(),
        items: [
            item(guid: "a", audio: "http://h/soon", title: "A"), item(guid: "b", audio: "http://h/soon", title: "B"),
        ])
    let (items, _) = document.identified()
    #expect(items.count == 2)
    #expect(items.allSatisfy { $0.aliases == [$0.identity] })
}

@Test func `IDs differ between podcasts`() throws {
    let one = try #require(WebAddress("http://one.example/")).self
    let two = try #require(WebAddress("http://two.example/")).self
    let identity = EpisodeIdentity.guid("1")
    #expect(identity.episodeID(in: .feed(at: one)) != identity.episodeID(in: .feed(at: two)))
    #expect(identity.episodeID(in: .feed(at: one)) == identity.episodeID(in: .feed(at: one)))
}
