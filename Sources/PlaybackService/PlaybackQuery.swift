package import BusKit
package import PodcastModel
package import WireMessages

/// The purpose of a question to the library.
package enum PlaybackQuery: Sendable {
    /// The episode of a load, before it begins or resumes.
    case load(LoadID)
    /// The same, which could not be found out in time.
    case lateLoad(LoadID)
    /// The chapters of what is loaded.
    case chapters(LoadID)
    /// The episode that follows, by the number of the question.
    case next(UInt64)
    /// Episodes that are to be marked.
    case marks(EpisodeMarking)
    /// The episode of a new bookmark.
    case bookmark(Command, WireBookmark)
}
