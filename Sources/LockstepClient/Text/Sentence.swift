import PodcastModel

package enum Sentence {
    /// The loaded episode and its playback state: `Paused at 12:34 of 58:10: A title, A podcast.`
    package static func status(_ snapshot: PlayerSnapshot) -> String {
        guard let podcast = snapshot.episode?.podcast else { return "Nothing is loaded." }
        let what = podcast.isEmpty ? snapshot.shownTitle : "\(snapshot.shownTitle), \(podcast)"
        var reason = snapshot.error.map { " \(stopped($0))" } ?? ""
        if let retry = snapshot.retry { reason = " \(stopped(capitalised(Self.retry(retry)) + retry.reason))" }
        return "\(beginning(snapshot)): \(stopped(what))\(reason)"
    }

    /// ` From “evening”.`, if the source queue isn’t Up Next.
    package static func sourceQueue(_ player: PlayerState) -> String {
        guard player.episode != nil, let queue = player.queue, queue != QueueName.default else { return "" }
        return " From \(QueueName.shown(queue))."
    }

    /// The playback state and the position: `Paused at 12:34 of 58:10`.
    package static func beginning(_ snapshot: PlayerSnapshot) -> String {
        switch snapshot.player.status {
        case .loading(let willPlay):
            (snapshot.position < 1 && snapshot.retry == nil ? "Loading" : "Loading at \(snapshot.shownPosition)")
                + (!willPlay && snapshot.retry == nil ? ", then paused" : "")
        case .finished: "Finished"
        case .failed: "Failed at \(snapshot.shownPosition)"
        case .playing(let isBuffering): "\(isBuffering ? "Buffering" : "Playing") at \(snapshot.shownPosition)"
        case .paused(by: .sleepTimer): "Paused by the sleep timer at \(snapshot.shownPosition)"
        case .paused(by: .soundDevice): "Paused without a sound device at \(snapshot.shownPosition)"
        case .paused(by: .stop): "Stopped at \(snapshot.shownPosition)"
        case .paused(by: .user), .idle: "Paused at \(snapshot.shownPosition)"
        }
    }

    /// The speed, the volume and the output: `Speed 1.5, volume 80 %.`
    package static func levels(_ snapshot: PlayerSnapshot) -> String {
        var text = "Speed \(NumberText.short(snapshot.speed)), volume \(NumberText.short(snapshot.volume)) %"
        if snapshot.player.isSilent {
            text += ", playing silently without a sound device"
        } else if let output = snapshot.player.output {
            text += ", output \(output)"
        }
        if snapshot.player.isLocal { text += ", from the downloaded file" }
        for word in snapshot.player.soundWords { text += ", \(word)" }
        return text + "."
    }

    /// `retry 2 of 3 in 5 s`; `retry 2 of 3, trying now` while it is in progress.
    package static func retry(_ retry: RetryState) -> String {
        let wait = retry.wait > 0 ? " in \(Int(min(retry.wait, 1e6).rounded(.up))) s" : ", trying now"
        return "retry \(retry.attempt) of \(retry.limit)\(wait)"
    }

    /// The report of a retry: in full, or only its number if the failure `isSame` as the previous one.
    package static func attempt(_ snapshot: PlayerSnapshot, isSame: Bool) -> String {
        guard isSame, let retry = snapshot.retry else { return status(snapshot) }
        return capitalised(Self.retry(retry)) + "."
    }

    /// `sleep in 14:32`, `sleep at the end of the episode`, `sleep after 2 episodes`, `no sleep timer`.
    package static func sleep(_ timer: SleepTimerState?, isFadingOut: Bool = false) -> String {
        let text =
            switch timer {
            case nil: "no sleep timer"
            case .time: "sleep in \(sleepTime(timer))"
            case .endOfChapter: "sleep at the end of the chapter"
            case .episodes(1): "sleep at the end of the episode"
            case .episodes: "sleep after \(sleepTime(timer))"
            }
        return isFadingOut ? text + ", fading out" : text
    }

    package static func sleep(_ snapshot: PlayerSnapshot) -> String {
        sleep(snapshot.sleep, isFadingOut: snapshot.player.isFadingOut)
    }

    /// `14:32`, `episode`, `3 episodes`, `chapter`.
    package static func sleepTime(_ timer: SleepTimerState?) -> String {
        switch timer {
        case nil: ""
        case .time(let remaining): ClockText.format(remaining.rounded(.up))
        case .endOfChapter: "chapter"
        case .episodes(1): "episode"
        case .episodes(let count): "\(count) episodes"
        }
    }

    package static func capitalised(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }

    /// Describes the whole screen in sentences, for screen readers.
    package static func everything(_ snapshot: PlayerSnapshot, selection: String?) -> String {
        var parts = [String(status(snapshot).dropLast())]
        if let remaining = snapshot.remaining, snapshot.episode != nil {
            parts.append("\(ClockText.format(remaining)) left")
        }
        if let name = snapshot.chapterName { parts.append(name.prefix(1).lowercased() + name.dropFirst()) }
        if snapshot.sleep != nil { parts.append(sleep(snapshot)) }
        parts.append("speed \(NumberText.short(snapshot.speed))")
        parts.append("volume \(NumberText.short(snapshot.volume)) per cent")
        if snapshot.player.isLocal { parts.append("from the downloaded file") }
        parts += snapshot.player.soundWords
        let queue = snapshot.queue
        let count = NumberText.counted(queue.entries.count, "entry", "entries")
        parts.append(queue.entries.isEmpty ? "\(queue.title) is empty" : "\(count) in \(queue.title)")
        if let selection { parts.append("selected: \(selection)") }
        if !snapshot.alerts.isEmpty {
            let first = snapshot.alerts[0]
            let keys = first.answers.joined(separator: ", ")
            let answers = keys.isEmpty ? "" : " (answer \(keys))"
            // The player’s own failure isn’t repeated.
            let more = snapshot.isReported(by: first) ? "" : first.message
            let message = more.hasSuffix(".") ? String(more.dropLast()) : more
            let what = "\(first.title)\(answers)" + (message.isEmpty ? "" : ": \(message)")
            parts.append("\(counted(snapshot.alerts)): \(what)")
        }
        parts.append(snapshot.health)
        return parts.joined(separator: "; ") + "."
    }

    /// The number of alerts, and the most severe if it is an error: `2 alerts, first: A title. See `lockstep alerts`.`
    package static func alerts(_ alerts: [PlayerSnapshot.Alert]) -> String? {
        guard let first = alerts.first else { return nil }
        guard first.severity == .error else {
            return "\(NumberText.counted(alerts.count, "alert")). See `lockstep alerts`."
        }
        return "\(counted(alerts)): \(stopped(first.title)) See `lockstep alerts`."
    }

    /// `1 alert`, `2 alerts, first`: the words before the first alert.
    private static func counted(_ alerts: [PlayerSnapshot.Alert]) -> String {
        NumberText.counted(alerts.count, "alert") + (alerts.count > 1 ? ", first" : "")
    }

    package static func alert(_ alert: PlayerSnapshot.Alert) -> String {
        let command =
            alert.hasDigitForEachAnswer ? "" : " `lockstep alerts answer \(alert.id) ACTION` answers this alert."
        let actions = alert.answers.isEmpty ? "" : " Answers: \(alert.answers.joined(separator: ", ")).\(command)"
        let message = alert.message.isEmpty ? "" : " \(stopped(alert.message))"
        return "Alert \(alert.id) (\(alert.severity.rawValue)): \(stopped(alert.title))\(message)\(actions)"
    }

    /// Adds a full stop to `text` unless it ends a sentence already.
    package static func stopped(_ text: String) -> String {
        guard let last = text.last else { return text }
        return ".!?…".contains(last) ? text : text + "."
    }
}
