package import PodcastModel

extension WireAnswerAlert {
    /// Judges the answer: the first one to an alert wins.
    ///
    /// - Parameters:
    ///   - winner: the answer that has won before, if the alert has been answered.
    ///   - alert: the alert, while it waits for an answer.
    /// - Returns: whether it is to be carried out; false: it is the one that has won.
    /// - Throws: `alreadyAnswered` with another one; `notFound`; `invalidArgument` for an answer that it does not take.
    package func isFirst(after winner: String?, to alert: WireAlert?) throws(Failure) -> Bool {
        if let winner {
            guard winner == action else {
                throw Failure(.alreadyAnswered, "The alert has been answered with “\(winner)”.")
            }
            return false
        }
        guard let alert else {
            throw Failure(.notFound, "There is no alert \(self.alert) any more; its cause may be gone.")
        }
        guard alert.actions.contains(action) else {
            let actions = alert.actions.joined(separator: ", ")
            throw Failure(.invalidArgument, "“\(action)” is no answer to this alert; there are: \(actions).")
        }
        return true
    }

    /// The reply to it; `changed`: whether this request ended the alert.
    package func answered(changed: Bool) -> WireAlertAnswered {
        var answered = WireAlertAnswered()
        answered.alert = alert
        answered.action = action
        answered.changed = changed
        return answered
    }
}
