import FeedParsing
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import LockstepCommands

@Suite struct JobFollowerTests {
    @Test func `a bar fits into the terminal`() {
        var progress = JobFollower.Progress()
        (progress.done, progress.total) = (30, 120)
        #expect(
            JobFollower.bar(progress, columns: 79)
                == "[#######-----------------------] 30 of 120 feeds fetched")
        (progress.done, progress.failed) = (120, 7)
        #expect(
            JobFollower.bar(progress, columns: 79)
                == "[##############################] 120 of 120 feeds fetched, 7 failed")
        for columns in 1..<60 {
            #expect(DisplayText.width(JobFollower.bar(progress, columns: columns)) <= columns)
        }
        #expect(JobFollower.bar(JobFollower.Progress(), columns: 40) == "0 of 0 feeds fetched")
    }

    // A job whose ID arrived before it counted as ended, so its results were incomplete.
    @Test func `a job that isn’t on the stream yet goes on, and one that has left it has ended`() throws {
        func state(_ jobs: WireJob...) -> FleetState {
            FleetState(FleetView(puts: jobs.map { (.job(.feeds, $0.id), $0) }))
        }
        func job(_ id: JobID, done: UInt32, ended: Int64 = 0) -> WireJob {
            .with { ($0.id, $0.total, $0.done, $0.ended) = (id.text, 2, done, ended) }
        }
        let (first, second) = (JobID.derived(from: "1"), JobID.derived(from: "2"))
        var jobs = JobFollower.Jobs([first, second])
        #expect(jobs.update(state()) == [] && !jobs.progress(in: state()).isOver)
        let begun = state(job(first, done: 1))
        #expect(jobs.update(begun) == [] && jobs.progress(in: begun).total == 2)
        #expect(jobs.update(state(job(first, done: 2, ended: 5), job(second, done: 0))) == [first])
        #expect(!jobs.progress(in: state(job(second, done: 1))).isOver)
        #expect(jobs.update(state()) == [second])
        let over = jobs.progress(in: state())
        #expect(over.isOver && over.done == 4 && over.total == 4)
        // The service doesn’t know it: it ended long ago.
        var old = JobFollower.Jobs([first])
        old.unseen = []
        #expect(old.update(state()) == [first] && old.progress(in: state()).isOver)
    }

    @Test func `a question about forgetting lists only what there is`() {
        let question = ForgetQuestion(
            ["A “b”"],
            [(0, "episode", "episodes"), (1, "queue entry", "queue entries"), (2, "favourite", "favourites")],
            isFinal: true)
        #expect(question.sentence.hasPrefix("Forgetting “A ‘b’” deletes 1 queue entry and 2 favourites now. "))
        let several = ForgetQuestion(["a", "b", "c", "d"], [], isFinal: false)
        #expect(several.sentence.hasPrefix("Forgetting 4 podcasts deletes their settings a day later. "))
    }

    @Test func `a list is divided into requests, and a podcast in several folders is one`() throws {
        let many = (0..<1_200).map { OPMLDocument.Outline("https://h\($0).example/") }
        #expect(ImportList(OPMLDocument(outlines: many)).parts.map(\.count) == [500, 500, 200])
        let long = (0..<10).map {
            OPMLDocument.Outline("https://h\($0).example/\(String(repeating: "a", count: 8_000))")
        }
        let parts = ImportList(OPMLDocument(outlines: Array(repeating: long, count: 1).flatMap(\.self))).parts
        #expect(parts.flatMap(\.self).count == 10)
        let list = ImportList(
            OPMLDocument(outlines: [
                .init("https://a.example/", tags: ["x"]),
                .init("http://A.example", ownTitle: "Mine", tags: ["X", "y"]),
                .init("file:///etc/passwd", title: "f", line: 3), .init("https://u:geheim@[bad/", line: 2),
            ]))
        #expect(list.outlines.map(\.tags) == [["x", "y"]] && list.outlines.map(\.ownTitle) == ["Mine"])
        #expect(list.problems.map(\.line) == [2, 3])
        #expect(!list.problems.contains { "\($0)".contains("geheim") })
        #expect(ImportReport(list, [], nil).json["problems"] != nil)
    }
}
